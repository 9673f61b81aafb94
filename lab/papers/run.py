"""A run of `cragmesh papers`: the mesh that is asked, and all that is collected from it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

from lab.papers import collect
from lab.papers.collect import OnStep
from lab.papers.data import Benchmark
from lab.papers.in_process import mesh_of
from services.gateway.mesh import Mesh
from services.gateway.papers.candidates import Pool
from services.gateway.papers.enhance import Prompts
from services.gateway.settings import GatewaySettings
from services.kit.errors import ServiceFailure
from services.kit.precision import has_torch
from services.kit.telemetry import configure_logging
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from services.retriever.app import State
from services.retriever.app import create_app as create_retriever
from services.retriever.settings import RetrieverSettings

# Of the services in this process: batches of documents take longer than any request may.
DEADLINE_S = 600.0


async def collected(
    benchmark: Benchmark,
    folder: Path,
    collection: str,
    *,
    enhance: bool,
    concurrency: int,
    steps: Callable[[str, int], AbstractContextManager[OnStep]],
    warn: Callable[[str], None],
) -> tuple[dict[str, Pool], dict[str, str]]:
    """The pool of each question, and the facts of the run.

    Args:
        collection: of the running mesh, if it holds the documents already.
        enhance: whether the generator is asked for what is not in the folder.
        steps: shows how far a piece of work is that has so many items.
    """
    prompts = Prompts.read()
    questions = len(benchmark.questions)
    async with _mesh(folder, collection) as (mesh, settings, fingerprints):
        if collection:
            info = await collect.info(mesh, collection)
        else:
            with steps("indexing", len(benchmark.documents)) as step:
                name = collect.collection_name(benchmark.documents)
                info = await collect.index(mesh, name, benchmark.documents, step)
        reranker = await collect.reranker_model(mesh)
        models = {"reranker": reranker, **fingerprints}
        collector = collect.Collector(benchmark, mesh, settings, folder, info, models)
        if enhance:
            try:
                await mesh.llm.models(allow_s=2.0)
            except ServiceFailure:
                warn("the generator does not answer: only enhancements that the folder holds are used")
                enhance = False
        with steps("enhancing", questions) as step:
            enhanced = await collector.enhanced(prompts, ask=enhance, concurrency=concurrency, on_step=step)
        with steps("searching and re-scoring", questions) as step:
            pools = await collector.pools(enhanced, prompts, step)
    return pools, {
        "documents": f"{info.documents:,} in {info.name}, indexed by {', '.join(info.encoders)} and BM25",
        "questions": f"{questions} ({benchmark.left_out} without a relevant document left out)",
        "enhancement": collector.description(enhanced),
        "lists": f"{settings.papers_candidates} documents each; {settings.papers_rescored} re-scored by {reranker}",
        "intervals": "95 %, Bayesian bootstrap over questions, 4,000 resamples, fixed seed",
    }


@asynccontextmanager
async def _mesh(folder: Path, collection: str) -> AsyncIterator[tuple[Mesh, GatewaySettings, dict[str, str]]]:
    """A mesh with its settings and the fingerprints of its encoders by name.

    It is the running one for one of its collections, else retriever and reranker in this process, which alone tells
    fingerprints.
    """
    configure_logging("papers", "ERROR")
    if has_torch():
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
    # A measurement waits for what a request would go without.
    settings = GatewaySettings(papers_rescore_cap_s=30, retrieve_cap_s=30)
    apps = {}
    if not collection:
        place = folder / "collections"
        apps["retriever"] = create_retriever(
            RetrieverSettings(qdrant_path=place, qdrant_url=None, max_deadline_s=DEADLINE_S)
        )
        apps["reranker"] = create_reranker(RerankerSettings(max_deadline_s=DEADLINE_S))
    async with mesh_of(apps, settings) as (mesh, states):
        encoders = [cast(State, state)["engine"].encoder for name, state in states.items() if name == "retriever"]
        yield mesh, settings, {encoder.name: encoder.fingerprint for encoder in encoders}
