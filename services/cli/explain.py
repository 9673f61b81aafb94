"""How an answer came about: the trace of a response as a tree."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from proto.answer import AnswerResponse, Trace, TraceEvent, TraceKind
from services.cli.console import plain

STYLES: dict[TraceKind, str] = {
    "plan": "cyan",
    "decision": "magenta",
    "prompt": "blue",
    "stage": "green",
    "skipped": "yellow",
}


def show_trace(console: Console, question: str, response: AnswerResponse) -> None:
    """Print what was planned, then each step with its prompts, replies and decisions, then the answer."""
    console.print(tree(question, response))


def tree(question: str, response: AnswerResponse) -> Tree:
    """The trace by steps, each where it first did something."""
    root = Tree(Text(plain(question), style="bold"))
    trace = response.trace or Trace()
    _plan(root, trace.events)
    for step, events in _by_step(trace.events).items():
        branch = root.add(Text(plain(step), style="bold"))
        for event in events:
            _add(branch, event)
    if trace.omitted_chars or trace.omitted_events:
        cut = f"{trace.omitted_events} events and {trace.omitted_chars:,} characters were left out"
        root.add(Text(cut, style="yellow"))
    answer = root.add(Text.assemble(("answer ", "bold"), plain(response.answer)))
    answer.add(
        f"{response.kind}, confidence {response.confidence:.0%}, source {response.source}, strategy "
        f"{plain(response.strategy)}, LLM calls {response.usage.llm_calls}"
    )
    return root


def _plan(root: Tree, events: Iterable[TraceEvent]) -> None:
    planned = [event for event in events if event.kind == "plan"]
    if planned:
        branch = root.add(Text("plan", style="bold"))
        for event in planned:
            branch.add(Text.assemble((plain(event.step), STYLES["plan"]), f"  {plain(event.detail)}"))


def _by_step(events: Iterable[TraceEvent]) -> dict[str, list[TraceEvent]]:
    steps: dict[str, list[TraceEvent]] = {}
    for event in events:
        if event.kind != "plan":
            steps.setdefault(event.step, []).append(event)
    return steps


def _add(branch: Tree, event: TraceEvent) -> None:
    took = f", {event.elapsed_ms / 1000:.2f} s" if event.elapsed_ms else ""
    head = Text.assemble(
        (event.kind, STYLES[event.kind]), (f" at {event.at_ms / 1000:.2f} s{took}", "dim"), f"  {plain(event.detail)}"
    )
    node = branch.add(head)
    if event.kind != "prompt":
        return
    head.append(f"  {event.prompt_tokens} + {event.completion_tokens} tokens", style="dim")
    for message in event.messages:
        node.add(Text.assemble((f"{message.role}\n", "dim"), plain(message.content)))
    if event.constraint:
        node.add(Text.assemble(("constraint\n", "dim"), (plain(event.constraint), "dim")))
    node.add(Text.assemble(("reply\n", "dim"), (plain(event.reply) or "none", "green" if event.reply else "red")))
