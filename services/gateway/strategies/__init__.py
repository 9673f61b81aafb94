"""Ways to answer. Adding one is one file here and one line in `STRATEGIES`."""

from services.gateway.strategies.adaptive import Adaptive
from services.gateway.strategies.base import Strategy
from services.gateway.strategies.closed_book import ClosedBook
from services.gateway.strategies.db3 import Db3
from services.gateway.strategies.electric_sheep import ElectricSheep
from services.gateway.strategies.naive_rag import NaiveRag
from services.gateway.strategies.weknow import WeKnow

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (Adaptive(), Db3(), ElectricSheep(), WeKnow(), NaiveRag(), ClosedBook())
}

__all__ = ["STRATEGIES", "Strategy"]
