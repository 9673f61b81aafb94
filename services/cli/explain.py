"""The trace of a response as a tree."""

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
    """Print the plan, then each step with its prompts, replies and decisions, then the answer."""
    root = Tree(Text(plain(question), style="bold"))
    trace = response.trace or Trace()
    plans = [event for event in trace.events if event.kind == "plan"]
    if plans:
        branch = root.add(Text("plan", style="bold"))
        for event in plans:
            branch.add(Text.assemble((plain(event.step), STYLES["plan"]), f"  {plain(event.detail)}"))
    branches: dict[str, Tree] = {}
    for event in trace.events:
        if event.kind != "plan":
            if event.step not in branches:
                branches[event.step] = root.add(Text(plain(event.step), style="bold"))
            _add(branches[event.step], event)
    if trace.omitted_chars or trace.omitted_events:
        cut = f"{trace.omitted_events} events and {trace.omitted_chars:,} characters were left out"
        root.add(Text(cut, style="yellow"))
    answer = root.add(Text.assemble(("answer ", "bold"), plain(response.answer)))
    answer.add(
        f"{response.kind}, confidence {response.confidence:.0%}, source {response.source}, strategy "
        f"{plain(response.strategy)}, LLM calls {response.usage.llm_calls}"
    )
    console.print(root)


def _add(branch: Tree, event: TraceEvent) -> None:
    duration = f", {event.elapsed_ms / 1000:.2f} s" if event.elapsed_ms else ""
    time = f" at {event.at_ms / 1000:.2f} s{duration}"
    head = Text.assemble((event.kind, STYLES[event.kind]), (time, "dim"), f"  {plain(event.detail)}")
    node = branch.add(head)
    if event.kind != "prompt":
        return
    head.append(f"  {event.prompt_tokens} + {event.completion_tokens} tokens", style="dim")
    for message in event.messages:
        node.add(Text.assemble((f"{message.role}\n", "dim"), plain(message.content)))
    if event.constraint:
        node.add(Text.assemble(("constraint\n", "dim"), (plain(event.constraint), "dim")))
    node.add(Text.assemble(("reply\n", "dim"), (plain(event.reply) or "none", "green" if event.reply else "red")))
