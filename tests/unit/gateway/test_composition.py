"""The gateway is composed: no strategy extends another, and no function carries its luggage by hand."""

import ast
from pathlib import Path

import pytest

import services.gateway
from services.gateway.strategies import STRATEGIES, Strategy

GATEWAY = Path(services.gateway.__path__[0])
MOST_PARAMETERS = 7


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_no_strategy_extends_another(strategy: type[Strategy]) -> None:
    assert strategy.__bases__ == (Strategy,)


@pytest.mark.parametrize("path", sorted(GATEWAY.rglob("*.py")), ids=lambda path: path.relative_to(GATEWAY).as_posix())
def test_no_function_has_too_many_parameters(path: Path) -> None:
    many = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            count = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])
            if count > MOST_PARAMETERS:
                many.append(f"{node.name}: {count}")
    assert many == []
