"""`cragmesh train prose`: passages, questions and answers that a model writes and then answers itself."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.console import say, write
from services.cli.ending import ends, settings_of
from services.cli.progress import ProgressLog, counting

if TYPE_CHECKING:
    from lab.trainer.synthesise.reading import run as running

# Between two lines of JSON where no terminal shows a bar.
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
    again = "the same command goes on from what is written"
    ending = ends(unreachable=(ServiceFailure,), problem=(TrainerError,), hint=": is the generator up?", again=again)
    with ending, data.alone():
        data.open()
        if data.items < count:
            with counting() as bar:
                log = ProgressLog(bar, LOG_S, begin_s=LOG_S)

                def show(now: running.Progress) -> None:
                    line: dict[str, object] = {"items": now.items, "goal": now.goal, "passages": now.briefs}
                    line |= {"per_minute": round(now.per_minute, 1), "left_s": now.left_s and round(now.left_s)}
                    description = f"{now.briefs} passages, {now.per_minute:.0f} a minute"
                    log.update(line, completed=now.items, total=now.goal, description=description)

                limits = {"seed": seed, "goal": count, "limit_s": minutes * 60, "briefs": briefs}
                asyncio.run(_write(data, url, requests=requests, on_progress=show, **limits))
        content = running.report(data, f"cragmesh train prose --seed {seed} --count {count}")
        running.write_report(to.with_name(f"{to.stem}.report.json"), content)
        if sample:
            files.write(sample / "sample.jsonl", running.sample(to))
            running.write_report(sample / "manifest.json", content)
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

    urls = settings_of(MeshUrls)
    async with http_client() as http:
        llm = model_at(url or str(urls.generator_url), http, model=urls.generator_model, api_key=urls.generator_api_key)
        await llm.models(allow_s=ALLOW_S)
        await running.write(Writer(llm, requests=requests), data, **options)  # type: ignore[arg-type]
