"""A mesh for the page: the real services over real HTTP, a generator that is scripted.

    python -m tests.page.mesh [--port 8140] [--seconds 0.6]

Every service is in a thread of this process, on a port of its own. The generator knows what a few questions are to be
answered with and says "i don't know" to the rest, in whatever form it is asked for: the page can be looked at, with all
that an answer may bring, without a model.
"""

import argparse
import logging
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import structlog
from pydantic import HttpUrl

from services.classifier.app import create_app as create_classifier
from services.classifier.settings import ClassifierSettings
from services.gateway.app import create_app as create_gateway
from services.gateway.settings import GatewaySettings
from services.kg.app import create_app as create_kg
from services.kg.settings import KgSettings
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from services.retriever.app import create_app as create_retriever
from services.retriever.settings import RetrieverSettings
from tests.mesh.fakes import Body, FakeGenerator
from tests.serving import served

UNKNOWN = "i don't know"
# A question's words to what is said; the first that fits.
ANSWERS = {
    r"walk on the moon": "Neil Armstrong",
    r"recovered the crew": "USS Hornet",
    r"k2 first climbed": "1954",
    r"madeira": "3,250 km",
    r"lighthouse": "Marta Lindqvist",
    r"how much higher is k2": "444 metres",
}
CALCULATIONS = {r"how much higher is k2": "metres by which K2 is higher = 8,611 - 8,167"}


def scripted(
    answers: Mapping[str, str] = ANSWERS, calculations: Mapping[str, str] = CALCULATIONS
) -> Callable[[Body], str]:
    """What to reply to a request: the answer, in the form that its constraint or its prompt asks for."""

    def reply(body: Body) -> str:
        asked = str(body["messages"][-1]["content"]).rpartition("Question:")[2] or str(body["messages"][-1]["content"])
        answer = _first(answers, asked, UNKNOWN)
        form = body.get("structured_outputs") or {}
        if "choice" in form:
            return str(form["choice"][0])
        if "root ::=" in form.get("grammar", ""):
            return _first(calculations, asked, "none")
        if '"false_premise": ' in form.get("regex", ""):
            return f'{{"reasoning": "The documents say so.", "false_premise": false, "answer": "{answer}"}}'
        return answer

    return reply


def _first(said: Mapping[str, str], asked: str, otherwise: str) -> str:
    return next((text for pattern, text in said.items() if re.search(pattern, asked, re.IGNORECASE)), otherwise)


@contextmanager
def inner(generator: FakeGenerator, folder: Path) -> Iterator[dict[str, str]]:
    """All services but the gateway: the settings that say where they are."""
    with ExitStack() as stack:
        generator_url = stack.enter_context(served(generator.app))
        # One process alone may hold a folder of collections.
        retriever = RetrieverSettings(qdrant_path=folder / "collections")
        kg = KgSettings(kg_database=f"sqlite:///{folder / 'kg.sqlite'}", generator_url=HttpUrl(generator_url))
        yield {
            "generator_url": generator_url,
            "retriever_url": stack.enter_context(served(create_retriever(retriever))),
            "reranker_url": stack.enter_context(served(create_reranker(RerankerSettings()))),
            "classifier_url": stack.enter_context(served(create_classifier(ClassifierSettings()))),
            "kg_url": stack.enter_context(served(create_kg(kg))),
        }


def gateway(urls: Mapping[str, str], **settings: Any) -> Any:
    """A gateway's application on top of them."""
    return create_gateway(GatewaySettings.model_validate({**urls, **settings}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8140)
    parser.add_argument("--seconds", type=float, default=0.6, help="that a reply of the generator takes")
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    generator = FakeGenerator(scripted(), seconds=args.seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        inner(generator, Path(folder)) as urls,
        served(gateway(urls), args.port) as url,
    ):
        print(url, flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
