"""The trace of a request, for a caller who asks for it: kept in memory, bounded, never logged."""

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
    """An event; a prompt has no reply while it runs, or when it was cancelled."""

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
        self.reply = completion.text
        self.elapsed_ms = elapsed_ms
        self.prompt_tokens = completion.prompt_tokens
        self.completion_tokens = completion.completion_tokens

    def failed(self, reason: str, elapsed_ms: float) -> None:
        self.detail = reason
        self.elapsed_ms = elapsed_ms


@dataclass(slots=True)
class Recorder:
    """Collects events; `trace` bounds their sizes."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: TraceKind, at_ms: float, step: str, detail: str, *, elapsed_ms: float = 0.0) -> None:
        self.entries.append(Entry(kind, at_ms, step, detail, elapsed_ms=elapsed_ms))

    def prompt(self, at_ms: float, step: str, messages: Sequence[Message], constraint: Constraint | None) -> Entry:
        """The entry of a prompt that is being sent, for its reply."""
        form = json.dumps(constraint.body(), ensure_ascii=False) if constraint else ""
        entry = Entry("prompt", at_ms, step, "no reply", tuple(messages), form)
        self.entries.append(entry)
        return entry

    def trace(self) -> Trace:
        """All events in order of time, without the last of too many and the ends of too long texts."""
        ordered = sorted(self.entries, key=lambda entry: entry.at_ms)
        texts = _TextBudget(MAX_TRACE_CHARS)
        events = tuple(
            TraceEvent(
                at_ms=round(entry.at_ms, 1),
                step=entry.step,
                kind=entry.kind,
                detail=texts.cut(entry.detail),
                messages=tuple(
                    TraceMessage(role=sent.role, content=texts.cut(sent.content)) for sent in entry.messages
                ),
                constraint=texts.cut(entry.constraint),
                reply=texts.cut(entry.reply),
                elapsed_ms=round(entry.elapsed_ms, 1),
                prompt_tokens=entry.prompt_tokens,
                completion_tokens=entry.completion_tokens,
            )
            for entry in ordered[:MAX_TRACE_EVENTS]
        )
        return Trace(events=events, omitted_chars=texts.omitted, omitted_events=len(ordered) - len(events))


class _TextBudget:
    """The characters of all texts together."""

    def __init__(self, chars: int) -> None:
        self._left = chars
        self.omitted = 0

    def cut(self, text: str) -> str:
        limit = min(MAX_TRACE_TEXT_CHARS, self._left)
        if len(text) > limit:
            beginning = text[: max(0, limit - len(CUT))]
            self.omitted += len(text) - len(beginning)
            text = beginning + CUT if limit > len(CUT) else ""
        self._left -= len(text)
        return text
