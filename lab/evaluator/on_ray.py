"""Questions asked by actors of a Ray cluster, one a node; their answers come back to one log, so that the run goes on
after a kill as any other. A question whose actor is lost is asked again."""

import contextlib
import itertools
from collections.abc import Awaitable, Callable

import ray

from lab.evaluator.data import Item
from lab.evaluator.drive import Asking, ask
from lab.evaluator.mesh import MeshClient
from lab.evaluator.store import Prediction
from lab.evaluator.tokens import TokenCutter


class Asker:
    """A connection to the gateway; answers are cut by an estimate of their tokens."""

    def __init__(self, url: str, api_key: str, asking: Asking) -> None:
        self._mesh = MeshClient(url, api_key=api_key)
        self._stack = contextlib.AsyncExitStack()
        self._cutter = TokenCutter(None)
        self._asking = asking
        self._open = False

    async def ask(self, item: Item) -> Prediction:
        """Raises EvaluatorError as `drive.ask` does."""
        if not self._open:
            self._open = True
            await self._stack.enter_async_context(self._mesh)
        return await ask(item, self._mesh, self._cutter, self._asking)


def asker(url: str, api_key: str, asking: Asking) -> Callable[[Item], Awaitable[Prediction]]:
    """Asks by the nodes' actors in turn, on the cluster that Ray finds, or starts here."""
    ray.init(ignore_reinit_error=True, logging_level="warning", log_to_driver=False)
    actor = ray.remote(Asker).options(
        num_cpus=0.1,
        max_concurrency=asking.concurrency,
        max_restarts=-1,
        max_task_retries=-1,
        scheduling_strategy="SPREAD",
    )
    nodes = sum(node["Alive"] for node in ray.nodes())
    actors = itertools.cycle([actor.remote(url, api_key, asking) for _ in range(nodes)])
    return lambda item: next(actors).ask.remote(item)
