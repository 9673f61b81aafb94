"""One question from the command line to the gateway and back."""

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict, TypeAdapter
from rich.live import Live

from proto.answer import StageEvent
from services.cli import client, explain, render
from services.cli.caller import Refused, Unreachable
from services.cli.client import OnStage
from services.cli.console import err, out, say, write_json
from services.cli.ending import ANSWERED, PROBLEM, UNREACHABLE
from services.cli.questions import Question

DEMO = resources.files("services.cli") / "demo"
REFRESH_PER_S = 8


class DemoQuestion(BaseModel):
    """A question about the pages in `services/cli/demo`."""

    model_config = ConfigDict(frozen=True)

    question: str
    answer: str
    note: str


async def ask(
    question: Question,
    url: str,
    *,
    api_key: str = "",
    as_json: bool = False,
    traced: bool = False,
    transport: httpx.AsyncBaseTransport | None = None,
) -> int:
    """Ask, show the stages as they run and then the answer, and return the exit code.

    Args:
        as_json: print the response's JSON and nothing else.
        traced: ask for the trace, and show how the answer came about.
    """
    body = question.body | {"trace": True} if traced else question.body
    try:
        async with client.http_client(api_key, transport) as http:
            with _progress(question.budget_s, quiet=as_json) as on_stage:
                response = await client.ask(http, url, body, budget_s=question.budget_s, on_stage=on_stage)
    except Refused as failure:
        if as_json:
            write_json(failure.problem)
        render.show_problem(err, failure.problem)
        return PROBLEM
    except Unreachable as failure:
        down = "is not up: start the mesh with `cragmesh up`, or set CRAGMESH_GATEWAY_URL"
        say(f"The gateway at {url} {f'did not answer: {failure}' if str(failure) else down}", style="red")
        return UNREACHABLE
    if as_json:
        write_json(response)
    elif traced:
        explain.show_trace(out, question.text, response)
    else:
        render.show_answer(out, question.text, response, budget_s=question.budget_s, gold=question.gold)
    return ANSWERED


def demo_questions() -> tuple[DemoQuestion, ...]:
    """The questions of the demo; the first is the one that is asked by default."""
    return TypeAdapter(tuple[DemoQuestion, ...]).validate_json((DEMO / "questions.json").read_bytes())


def demo_pages() -> list[Path]:
    """The pages of the demo."""
    return sorted(Path(str(page)) for page in DEMO.iterdir() if page.name.endswith(".html"))


@contextlib.contextmanager
def _progress(budget_s: float, *, quiet: bool) -> Iterator[OnStage]:
    if err.is_terminal:
        stages = render.LiveStages(budget_s)
        with Live(stages, console=err, refresh_per_second=REFRESH_PER_S, transient=True):
            yield stages.update
        return

    def line(event: StageEvent) -> None:
        if not quiet:
            say(render.stage_line(event))

    yield line
