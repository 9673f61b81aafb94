"""`cragmesh train prose`: passages, questions and answers that a model writes and then answers itself."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import TaskID

from services.cli.ask import PROBLEM, UNREACHABLE
from services.cli.console import err, fail, say, write
from services.cli.progress import counting

if TYPE_CHECKING:
    from lab.trainer.synthesise.reading import run as running

# Where no terminal shows a bar, a line of JSON tells so often how far it is.
LOG_S = 30.0
ALLOW_S = 30.0


def prose(
    to: Annotated[Path, typer.Option("--out", "-o", help="File to write, or to go on with.")] = Path(
        "out/train/prose.jsonl"
    ),
    url: Annotated[str, typer.Option(help="An OpenAI-compatible server; the mesh's generator by default.")] = "",
    minutes: Annotated[float, typer.Option(min=0, help="No passage is begun after so many; 0 sets no limit.")] = 0,
    count: Annotated[int, typer.Option(min=1, max=10_000_000, help="Lines at which it ends.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Of what the passages are to be about.")] = 0,
    briefs: Annotated[int, typer.Option(min=1, max=512, help="Passages under way at once.")] = 24,
    requests: Annotated[int, typer.Option(min=1, max=512, help="Requests under way at once.")] = 48,
    sample: Annotated[Path | None, typer.Option(help="A folder for a sample of 200 lines and the manifest.")] = None,
) -> None:
    """Have a model write passages, questions and answers about made-up things, and keep what it answers so itself.

    The same command goes on with a file that is there. Where the passage does not say it, the answer is empty.
    """
    from lab.trainer import files
    from lab.trainer.errors import TrainerError
    from lab.trainer.synthesise.reading import run as running
    from services.kit.errors import ServiceFailure

    data = running.Files(to)
    try:
        data.open()
        if data.items < count:
            with _Board() as board:
                asyncio.run(
                    _write(data, url, seed=seed, goal=count, limit_s=minutes * 60, briefs=briefs, requests=requests,
                           on_progress=board.show)
                )  # fmt: skip
        content = running.report(data, f"cragmesh train prose --seed {seed} --count {count}")
        running.write_report(to.with_name(f"{to.stem}.report.json"), content)
        if sample:
            files.write(sample / "sample.jsonl", running.sample(to))
            running.write_report(sample / "manifest.json", content)
    except ServiceFailure as error:
        fail(f"{error}: is the generator up?", UNREACHABLE)
    except TrainerError as error:
        fail(str(error), PROBLEM)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from what is written", "yellow")
        raise typer.Exit(130) from None
    for reason, number in data.rejected.most_common():
        say(f"{number:6}  {reason}", "dim")
    say(f"{data.items} items, {content['answerable']} of them with an answer, from {len(data.done)} briefs", "dim")
    write(str(to))


async def _write(data: "running.Files", url: str, *, requests: int, **options: object) -> None:
    from lab.trainer.synthesise.reading import run as running
    from lab.trainer.synthesise.reading.writer import Writer
    from services.kit.client import http_client
    from services.kit.generator import model_at
    from services.kit.settings import MeshUrls

    urls = MeshUrls()
    async with http_client() as http:
        llm = model_at(url or str(urls.generator_url), http, model=urls.generator_model, api_key=urls.generator_api_key)
        await llm.models(allow_s=ALLOW_S)
        await running.write(Writer(llm, requests=requests), data, **options)  # type: ignore[arg-type]


class _Board:
    """A bar on a terminal, lines of JSON elsewhere."""

    def __init__(self) -> None:
        self._bar = counting()
        self._task: TaskID | None = None
        self._logged = time.monotonic()

    def __enter__(self) -> "_Board":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, now: "running.Progress") -> None:
        if err.is_terminal:
            if self._task is None:
                self._task = self._bar.add_task("", total=now.goal)
            self._bar.update(
                self._task, completed=now.items, description=f"{now.briefs} passages, {now.per_minute:.0f} a minute"
            )
            return
        if time.monotonic() - self._logged < LOG_S:
            return
        self._logged = time.monotonic()
        line = {"items": now.items, "goal": now.goal, "passages": now.briefs, "per_minute": round(now.per_minute, 1)}
        line |= {"left_s": round(now.left_s)} if now.left_s is not None else {}
        sys.stderr.write(json.dumps(line) + "\n")
        sys.stderr.flush()
