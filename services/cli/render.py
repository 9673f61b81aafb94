"""Answers, problems and the state of the mesh, for people."""

import re
import time
from collections.abc import Sequence
from datetime import timedelta

from rich.bar import Bar
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from proto.answer import AnswerKind, AnswerResponse, Citation, StageEvent
from proto.base import Problem, StageTiming
from services.cli.console import plain
from services.cli.supervisor import ServiceStatus

KIND_STYLES: dict[AnswerKind, str] = {"answer": "green", "unknown": "yellow", "invalid_question": "magenta"}
KIND_TITLES: dict[AnswerKind, str] = {
    "answer": "answer",
    "unknown": "no answer found",
    "invalid_question": "the question's premise is false",
}
STATUS_STYLES = {"started": "yellow", "done": "green", "degraded": "red", "skipped": "dim"}
PASSAGE_CHARS = 280
BAR_WIDTH = 32


class LiveStages:
    """The stages of a running question, and the time left."""

    def __init__(self, budget_s: float) -> None:
        self._events: dict[str, StageEvent] = {}
        self._due = time.monotonic() + budget_s
        self._budget_s = budget_s

    def update(self, event: StageEvent) -> None:
        """Note an event, and set the clock by the gateway's own."""
        self._events[event.stage] = event
        self._due = time.monotonic() + event.left_ms / 1000

    def __rich__(self) -> RenderableType:
        left = max(0.0, self._due - time.monotonic())
        clock = Table.grid(padding=(0, 1))
        clock.add_row(
            Bar(self._budget_s, 0, left, width=BAR_WIDTH, color="red" if left < self._budget_s / 5 else "cyan"),
            Text(f"{left:.1f} s left"),
        )
        stages = Table.grid(padding=(0, 2))
        for event in self._events.values():
            stages.add_row(
                Text(plain(event.stage)),
                Text(event.status if event.status != "started" else "...", style=STATUS_STYLES[event.status]),
                Text(_ms(event.timing.elapsed_ms) if event.status in ("done", "degraded") else "", justify="right"),
                Text(plain(event.detail), style="dim"),
            )
        return Group(clock, stages)


def stage_line(event: StageEvent) -> str:
    """One line for a stage, where there is no terminal."""
    duration = f" {_ms(event.timing.elapsed_ms)}" if event.status in ("done", "degraded") else ""
    why = f" ({event.detail})" if event.detail else ""
    return f"{event.stage}: {event.status}{duration}{why}, {event.left_ms / 1000:.1f} s left"


def show_answer(
    console: Console, question: str, response: AnswerResponse, *, budget_s: float, gold: Sequence[str] = ()
) -> None:
    """Print an answer with all that a reader needs to judge it."""
    console.print(Text(plain(question), style="bold"))
    console.print(_answer(response, gold))
    console.print(_facts(response))
    if response.candidates:
        console.print(_candidates(response))
    if response.citations:
        console.print(_citations(response.citations, response.answer if response.kind == "answer" else ""))
    if response.degraded:
        console.print(_degraded(response))
    if response.timings:
        console.print(_waterfall(response, budget_s))


def show_problem(console: Console, problem: Problem) -> None:
    """Print a problem document."""
    body = Text(plain(problem.detail or problem.title))
    for error in problem.errors:
        body.append(f"\n{plain(error.field) or 'body'}: ", style="bold")
        body.append(plain(error.message))
        if error.limit and error.limit not in error.message:
            body.append(f" ({plain(error.limit)})", style="dim")
    footer = f"request {plain(problem.request_id)}" if problem.request_id else None
    title = Text(f"{problem.status} {plain(problem.title)}")
    console.print(Panel(body, title=title, subtitle=footer, border_style="red", title_align="left"))


def show_status(console: Console, rows: Sequence[ServiceStatus]) -> None:
    """Print the state of the mesh."""
    table = Table(box=None, pad_edge=False)
    for heading in ("service", "ready", "address", "pid"):
        table.add_column(heading, no_wrap=True)
    for heading in ("memory", "uptime"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("runs", overflow="fold")
    for row in rows:
        runs = Text(" ".join(plain(part) for part in (row.model, row.device, row.precision) if part))
        if row.detail:
            runs.append(f"{' ' if runs else ''}{plain(row.detail)}", style="dim")
        table.add_row(
            row.service,
            Text("yes", style="green") if row.ready else Text("no", style="red"),
            row.url.removeprefix("http://"),
            str(row.pid or "-"),
            f"{row.memory_bytes / 2**30:.1f} GiB" if row.memory_bytes else "-",
            str(timedelta(seconds=int(row.uptime_s))) if row.pid else "-",
            runs,
        )
    console.print(table)


def shorten(passage: str, answer: str, width: int = PASSAGE_CHARS) -> Text:
    """A passage cut to `width` characters around the answer or its longest word, which is marked."""
    passage = " ".join(plain(passage).split())
    start, end = _locate(passage, answer)
    left = max(0, min((start + end - width) // 2, len(passage) - width))
    right = min(len(passage), left + width)
    text = Text("…" if left else "")
    text.append(passage[left:right])
    text.append("…" if right < len(passage) else "")
    if end > start:
        shift = (1 if left else 0) - left
        text.stylize("bold green", max(0, start + shift), min(len(text), end + shift))
    return text


def _locate(passage: str, answer: str) -> tuple[int, int]:
    words = sorted(set(re.findall(r"\w{4,}|\d+", answer)), key=len, reverse=True)
    for text in (answer.strip().rstrip("."), *words):
        if text and (match := re.search(re.escape(text), passage, re.IGNORECASE)):
            return match.span()
    return 0, 0


def _answer(response: AnswerResponse, gold: Sequence[str]) -> RenderableType:
    style = KIND_STYLES[response.kind]
    title = KIND_TITLES[response.kind]
    panel = Panel(Text(plain(response.answer), style=f"bold {style}"), title=title, border_style=style, expand=False)
    if not gold:
        return panel
    body = Text(plain(gold[0]))
    if len(gold) > 1:
        body.append("\nor " + plain(" | ".join(gold[1:])), style="dim")
    return Columns([panel, Panel(body, title="expected", border_style="blue", expand=False)])


def _facts(response: AnswerResponse) -> Text:
    usage = response.usage
    facts = [
        f"confidence {response.confidence:.0%}",
        f"source {response.source}",
        f"strategy {plain(response.strategy)}",
        f"LLM calls {usage.llm_calls}, tokens {usage.prompt_tokens} + {usage.completion_tokens}",
    ]
    if labels := response.classification:
        facts.append(f"taken for {labels.domain}, {labels.dynamism}, {labels.question_type}")
    if response.request_id:
        facts.append(f"request {plain(response.request_id)}")
    return Text(" · ".join(facts), style="dim")


def _listing(title: str) -> Table:
    """An empty table without lines: a narrow mark, then a text."""
    table = _titled(title, show_header=False)
    table.add_column(justify="right", style="dim")
    table.add_column(overflow="fold")
    return table


def _titled(title: str, *, show_header: bool = True) -> Table:
    return Table(title=title, title_justify="left", box=None, show_header=show_header, pad_edge=False)


def _citations(citations: Sequence[Citation], answer: str) -> Table:
    table = _listing("it rests on")
    for number, citation in enumerate(citations, 1):
        name = plain(citation.page_name or citation.document) or f"page {citation.page}"
        if citation.page_number:
            name += f", p. {citation.page_number}"
        head = Text.assemble((name, "bold"), (f"  {plain(citation.page_url)}  {citation.score:.2f}", "dim"))
        table.add_row(str(number), Group(head, shorten(citation.text, answer)))
    return table


def _candidates(response: AnswerResponse) -> Table:
    """Spans whose probability was too low for an answer, each in its passage."""
    who = "these passages say" if len(response.candidates) > 1 else "this passage says"
    table = _listing(f"not sure enough to answer; {who}")
    for candidate in response.candidates:
        is_cited = candidate.citation < len(response.citations)
        name = plain(response.citations[candidate.citation].page_name) if is_cited else ""
        head = Text.assemble((plain(candidate.span), "bold yellow"), ("  " if name else "", ""), (name, "dim"))
        table.add_row(f"{candidate.probability:.0%}", Group(head, shorten(candidate.passage, candidate.span)))
    return table


def _degraded(response: AnswerResponse) -> Table:
    table = _titled("what was missing", show_header=False)
    for item in response.degraded:
        table.add_row(
            Text(plain(item.stage), style="red"), Text(plain(item.reason)), Text(plain(item.detail), style="dim")
        )
    return table


def _waterfall(response: AnswerResponse, budget_s: float) -> Table:
    timings = sorted(response.timings.items(), key=lambda item: item[1].start_ms)
    total_ms = max((timing.start_ms + timing.elapsed_ms for _, timing in timings), default=0.0)
    share = total_ms / (budget_s * 1000)
    table = _titled(f"where {_ms(total_ms)} of the {budget_s:g} s went ({share:.0%})")
    table.add_column("stage")
    for heading in ("start", "took", "queue", "inference"):
        table.add_column(heading, justify="right")
    table.add_column(Text.assemble(("queue ", "yellow"), ("inference ", "green"), ("the rest", "blue")))
    for name, timing in timings:
        table.add_row(
            Text(plain(name)),
            _ms(timing.start_ms),
            _ms(timing.elapsed_ms),
            _ms(timing.queue_ms) if timing.queue_ms else "",
            _ms(timing.inference_ms) if timing.inference_ms else "",
            _bar(timing, total_ms),
        )
    return table


def _bar(timing: StageTiming, total_ms: float) -> Text:
    """A stage on the time line. Only the parts' lengths are known, so queue, inference and rest stand in that order."""
    scale = BAR_WIDTH / total_ms if total_ms > 0 else 0.0
    first = min(BAR_WIDTH - 1, round(timing.start_ms * scale))
    length = max(1, min(BAR_WIDTH - first, round(timing.elapsed_ms * scale)))
    queue = min(length, round(timing.queue_ms * scale))
    inference = min(length - queue, round(timing.inference_ms * scale))
    return Text.assemble(
        " " * first, ("█" * queue, "yellow"), ("█" * inference, "green"), ("█" * (length - queue - inference), "blue")
    )


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
