"""What a domain knows, only its folder knows: no name, key or phrase of one stands in code elsewhere.

Allowed are the contract's labels (`proto/classify.py`), tests and docs. What is not moved home yet is listed with the
number of its lines; the list only shrinks.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from services.kg.domains import BUNDLED, CATALOGUE

ROOT = Path(__file__).parents[2]
HOME = "services/kg/domains/"
# Labels of the contract by their names, what records what the mesh does, what converts the benchmark's own files, and
# the thesaurus of headers that any table may have.
BY_LABEL = (
    "services/classifier/",
    "services/gateway/data/reports/",
    "lab/classifier/",
    "lab/crag_data/",
    "lab/draft/abbreviations.yaml",
    "lab/draft/measures.yaml",
    "lab/draft/names.yaml",
    "lab/draft/synonyms.yaml",
    "lab/goldens/",
)

# Words of the domains that mean other things as well.
ORDINARY = frozenset(
    (
        *("name", "company", "source", "work", "team", "song", "artist", "open", "score", "position", "part", "first"),
        *("release", "released", "date", "number", "person", "people", "title", "market", "profit"),
    )
)
# Beside what the files say, what everybody would know a domain by.
TELLING = re.compile(
    r"\b(?:films?|movies?|oscars?|academy awards?|box office|directed|actors?|actress(?:es)?|grammys?|billboard|albums?"
    r"|singers?|soccer|nba|basketball|premier league|la liga|stocks?|dividends?|ex-dividend|tickers?|nasdaq|nyse"
    r"|closing price|opening price|earnings per share|market cap(?:italization)?|infobox(?:es)?)\b"
)

# Files of which something is still to go home: how many lines, by who is at it. Goal: none.
STILL_ABROAD: dict[str, int] = {
    # Made-up data.
    "lab/trainer/synthesise/names.py": 2,
    "lab/trainer/synthesise/reading/topics.txt": 3,
    "lab/trainer/synthesise/reading/words.txt": 1,
    "lab/trainer/synthesise/words.txt": 1,
    # The judge.
    "lab/evaluator/judge/comparison.py": 4,
    "lab/evaluator/judge/reading.py": 1,
    "lab/evaluator/judge/text.py": 1,
    "lab/evaluator/judge/words.yaml": 2,
    "lab/evaluator/sources/crag.yaml": 17,
    # The gateway, the commands' examples, the text that quantisation is measured on.
    "services/cli/graph.py": 2,
    "services/cli/kg.py": 1,
    "services/gateway/confidence.py": 1,
    "services/gateway/prompts/domain_hints.txt": 4,
    "services/gateway/prompts/entities.txt": 3,
    "services/gateway/steps/knowledge_graph.py": 1,
    "services/gateway/steps/public_data.py": 9,
    "services/generator/data/activations.txt": 4,
}


def names_of_domains() -> frozenset[str]:
    """Names that only a domain's files give: functions, kinds, tables, and keys of several words."""
    functions = {name for function in CATALOGUE.functions for name in (function.name, *function.aliases)}
    keys = {
        name
        for function in CATALOGUE.functions
        for key in function.keys
        for name in (key.name, *key.aliases)
        if "_" in name
    }
    return frozenset((functions | keys | CATALOGUE.kinds.keys() | CATALOGUE.tables.keys() | set(BUNDLED)) - ORDINARY)


NAMES = names_of_domains()


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and strings of a module but for docstrings."""
    nodes = list(ast.walk(tree))
    docs = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def lines_of(path: str, text: str) -> Iterable[tuple[int, str]]:
    return strings(ast.parse(text)) if path.endswith(".py") else enumerate(text.splitlines(), 1)


def abroad(path: str, text: str) -> dict[int, str]:
    """Lines of a file that name something of a domain, with what."""
    found: dict[int, str] = {}
    for line, value in lines_of(path, text):
        words = set(re.findall(r"\w+", value.lower()))
        if hit := words & NAMES or set(TELLING.findall(value.lower())):
            found[line] = min(hit)
    return found


def files() -> list[str]:
    paths = (path for place in ("services", "lab") for path in (ROOT / place).rglob("*"))
    names = (path.relative_to(ROOT).as_posix() for path in paths if path.suffix in (".py", ".txt", ".yaml"))
    return sorted(name for name in names if not name.startswith((HOME, *BY_LABEL)))


def test_no_domain_is_known_outside_its_folder() -> None:
    new = {}
    for path in files():
        lines = abroad(path, (ROOT / path).read_text(encoding="utf-8"))
        if len(lines) > STILL_ABROAD.get(path, 0):
            new[path] = lines
    assert not new


def test_the_list_of_what_is_abroad_only_shrinks() -> None:
    gone = [path for path in STILL_ABROAD if not (ROOT / path).exists()]
    assert not gone, f"take them from the list: {gone}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('x = "get_movie_cast"', [1]),
        ('x = {"a": "movie_person"}', [1]),
        ('\nif domain == "finance":\n    pass', [2]),
        ('x = "who directed the film?"', [1]),
        ('x = f"{a} original_title"', [1]),
        ('"""The film that is a docstring."""\nx = "a name, a date, an open door"', []),
    ],
)
def test_what_is_found(text: str, lines: list[int]) -> None:
    assert sorted(abroad("x.py", text)) == lines
