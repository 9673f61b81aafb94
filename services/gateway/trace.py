"""What a request did, for the caller who asked to be told: kept in memory, bounded, never logged."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from proto.answer import (
    MAX_TRACE_CHARS,
    MAX_TRACE_EVENTS,
    MAX_TRACE_TEXT_CHARS,
    Trace,
    TraceEvent,
    TraceKind,
    TraceMessage,
)
from services.kit.llm import Completion, Constraint, Message

CUT = " [cut]"


@dataclass(slots=True)
class Entry:
    """An event that may still be going on; a prompt without a reply was given up."""

    kind: TraceKind
    at_ms: float
    step: str
    detail: str = ""
    messages: tuple[Message, ...] = ()
    constraint: str = ""
    reply: str = ""
    elapsed_ms: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def replied(self, completion: Completion, elapsed_ms: float) -> None:
        self.detail = completion.model
        self.reply = "\n\n".join(sample.text for sample in completion.samples)
        self.elapsed_ms = elapsed_ms
        self.prompt_tokens = completion.prompt_tokens
        self.completion_tokens = completion.completion_tokens

    def failed(self, reason: str, elapsed_ms: float) -> None:
        self.detail = reason
        self.elapsed_ms = elapsed_ms


@dataclass(slots=True)
class Recorder:
    """Keeps events as they come; sizes are bounded when the trace is made."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: TraceKind, at_ms: float, step: str, detail: str, *, elapsed_ms: float = 0.0) -> None:
        self.entries.append(Entry(kind, at_ms, step, detail, elapsed_ms=elapsed_ms))

    def prompt(self, at_ms: float, step: str, messages: Sequence[Message], constraint: Constraint | None) -> Entry:
        """A prompt that is being sent; its reply is entered when it comes."""
        form = json.dumps(constraint.body(), ensure_ascii=False) if constraint else ""
        entry = Entry("prompt", at_ms, step, "no reply", tuple(messages), form)
        self.entries.append(entry)
        return entry

    def trace(self) -> Trace:
        """All events in order of time: of too many the last are left out, of too long texts the ends."""
        ordered = sorted(self.entries, key=lambda entry: entry.at_ms)
        kept, purse = ordered[:MAX_TRACE_EVENTS], _Purse(MAX_TRACE_CHARS)
        events = tuple(
            TraceEvent(
                at_ms=round(entry.at_ms, 1),
                step=entry.step,
                kind=entry.kind,
                detail=purse.cut(entry.detail),
                messages=tuple(TraceMessage(role=one.role, content=purse.cut(one.content)) for one in entry.messages),
                constraint=purse.cut(entry.constraint),
                reply=purse.cut(entry.reply),
                elapsed_ms=round(entry.elapsed_ms, 1),
                prompt_tokens=entry.prompt_tokens,
                completion_tokens=entry.completion_tokens,
            )
            for entry in kept
        )
        return Trace(events=events, omitted_chars=purse.omitted, omitted_events=len(ordered) - len(kept))


class _Purse:
    """Characters that are left for all texts together."""

    def __init__(self, chars: int) -> None:
        self._left = chars
        self.omitted = 0

    def cut(self, text: str) -> str:
        limit = min(MAX_TRACE_TEXT_CHARS, self._left)
        if len(text) > limit:
            kept = text[: max(0, limit - len(CUT))]
            self.omitted += len(text) - len(kept)
            text = kept + CUT if limit > len(CUT) else ""
        self._left -= len(text)
        return text
