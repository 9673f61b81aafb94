"""The gateway is composed: no strategy extends another, and no function carries its luggage by hand."""

import ast
from pathlib import Path

import services.gateway
from services.gateway.strategies import STRATEGIES, Strategy

GATEWAY = Path(services.gateway.__path__[0])
MOST_PARAMETERS = 7


def test_no_strategy_extends_another() -> None:
    assert {type(strategy).__bases__ for strategy in STRATEGIES.values()} == {(Strategy,)}


def test_no_function_has_too_many_parameters() -> None:
    many = []
    for path in GATEWAY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
                if count > MOST_PARAMETERS:
                    many.append(f"{path.name}: {node.name}: {count}")
    assert many == []
