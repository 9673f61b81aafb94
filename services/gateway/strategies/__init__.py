"""Ways to answer. Adding one is one file here and one line in `STRATEGIES`."""

from services.gateway.settings import GatewaySettings
from services.gateway.strategies.adaptive import Adaptive
from services.gateway.strategies.base import Strategy
from services.gateway.strategies.closed_book import ClosedBook
from services.gateway.strategies.db3 import Db3
from services.gateway.strategies.electric_sheep import ElectricSheep
from services.gateway.strategies.naive_rag import NaiveRag
from services.gateway.strategies.weknow import WeKnow

STRATEGIES: tuple[type[Strategy], ...] = (Adaptive, Db3, ElectricSheep, WeKnow, NaiveRag, ClosedBook)


def load_strategies(settings: GatewaySettings) -> dict[str, Strategy]:
    """All strategies by name, their prompts read."""
    strategies = (strategy(settings) for strategy in STRATEGIES)
    return {strategy.name: strategy for strategy in strategies}


__all__ = ["STRATEGIES", "Strategy", "load_strategies"]
