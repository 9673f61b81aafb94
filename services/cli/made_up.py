"""Made-up questions put to the running mesh, and what was fitted on them put where its gateway finds it."""

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import ValidationError

from lab.evaluator import runs
from lab.evaluator.errors import BadRun
from lab.evaluator.mesh import MeshClient
from lab.evaluator.settings import EvaluatorSettings
from lab.evaluator.store import RunFolder
from services.cli import eval as evaluation
from services.cli.console import say
from services.cli.services import root
from services.cli.settings import project_root
from services.cli.synthesise import write_questions
from services.gateway.calibration import LOOK_S, ConfidenceHealth
from services.kit.settings import MeshUrls
from services.kit.shard import WHOLE, Shard

FOLDER = Path("out/calibration")
QUESTIONS = "questions.jsonl"
RUN = "run"
STRATEGY = "adaptive"
# Another than that of the training examples: these are to be new to an adapter that was taught here.
SEED = 7_777
# More than a fast mesh answers in the time.
MOST = 2_000
IN_EFFECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway, whom it asks, and the folder of questions, run and pictures."""

    url: str
    api_key: str
    generator: str
    folder: Path
    shard: Shard = WHOLE

    @property
    def run(self) -> Path:
        return self.folder / (f"{RUN}-{self.shard.index}-of-{self.shard.count}" if self.shard.count > 1 else RUN)


async def target(settings: EvaluatorSettings, urls: MeshUrls, folder: Path | None, shard: Shard = WHOLE) -> Target:
    """The mesh that is to be calibrated.

    Raises:
        EvaluatorError: it is not there, or cannot say who its generator is.
    """
    url = root("gateway", urls)
    async with MeshClient(url, api_key=settings.api_key) as mesh:
        await mesh.describe(STRATEGY)
        generator = await mesh.generator()
    if not generator:
        raise BadRun(f"the gateway at {url} cannot say who its generator is: is that one up?")
    own = re.sub(r"[^\w.+-]", "_", generator)
    return Target(url, settings.api_key, generator, folder or project_root() / FOLDER / own, shard)


async def ask(
    target: Target,
    urls: MeshUrls,
    *,
    minutes: float,
    concurrency: int,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Ask made-up questions until the time is over; what an earlier call has asked is not asked again.

    Raises:
        EvaluatorError: the mesh went away, another generator answers, or nothing can be written.
    """
    questions = target.folder / QUESTIONS
    if not questions.exists():
        await asyncio.to_thread(write_questions, questions, MOST, SEED)
    order = runs.Order(
        sources=(questions,),
        folder=RunFolder(target.run),
        gateway_url=target.url,
        api_key=target.api_key,
        strategy=STRATEGY,
        concurrency=concurrency,
        selection=runs.Selection(shard=target.shard),
        every_answer=True,
        limit_s=60 * minutes,
        command="cragmesh calibrate --made-up",
    )
    progress = await evaluation.ask_questions(order, urls, tokenizer=False, transport=transport)
    say(f"{progress.done} questions asked, {progress.failed} without an answer", "dim")
    async with MeshClient(target.url, api_key=target.api_key, transport=transport) as mesh:
        now = await mesh.generator()
    if now != target.generator:
        raise BadRun(f"{target.generator} was asked, and now {now or 'nobody'} answers: run this command again")


async def in_effect(target: Target, digest: str, *, transport: httpx.AsyncBaseTransport | None = None) -> str:
    """Wait until the gateway weighs answers by the file that was written; returns why not, empty when it does."""
    until = time.monotonic() + IN_EFFECT_S
    async with MeshClient(target.url, api_key=target.api_key, transport=transport) as mesh:
        while True:
            try:
                health = ConfidenceHealth.model_validate(await mesh.confidence())
            except ValidationError:
                health = ConfidenceHealth()
            if health.digest == digest:
                return ""
            if time.monotonic() > until:
                return health.detail or "it looks for confidences in another folder, CRAGMESH_CONFIDENCE_DIR"
            await asyncio.sleep(LOOK_S / 2)
