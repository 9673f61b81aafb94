"""A look-up beside its question: a model that writes SQL takes a near column for one that is not there.

Asked for a statement it hardly ever replies NONE, and asked whether its statement is right it says yes. Shown the
columns and what was found, after examples in which no column tells what is asked, it mostly chooses "none" there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from services.kg.errors import ParseError
from services.kg.generate.base import as_data, chat
from services.kg.generate.ground import WEAK_WORDS
from services.kg.generate.rules.inflection import inflections
from services.kg.generate.sql.statement import Statement
from services.kg.language.catalogue import Catalogue, Domain, Function, Key
from services.kg.language.parse import parse_each
from services.kg.language.tree import Call, Query
from services.kg.outcome import Scalar
from services.kg.store.names import normalise
from services.kg.syntax import parse_select
from services.kit.llm import LLM, Completion, Constraint
from services.kit.untrusted import one_line

# The prompt of a check.
CHECK = "column"
NO_COLUMN = "none"
MAX_TOKENS = 24
MAX_VALUE_CHARS = 30
_JOINTS = frozenset(("at", "by", "for", "from", "in", "of", "on", "to", "until", "with"))
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class LookUp:
    """A statement that tells facts of some rows."""

    function: Function
    keys: Sequence[Key]  # of the facts
    is_of_names: bool  # whether it tells the rows' own names or numbers, for which no near key is taken

    def is_said(self, query: str) -> bool:
        """Whether a question has the last word of each key's name: "loaded" of `loaded_by`, "discount" of `disc`."""
        words = _WORD.findall(query.lower())
        said = {form for word in words for form in (word, *inflections(word))}
        return all(
            said.intersection(_forms(key.name)) or any(word.startswith(_last_word(key.name)) for word in words)
            for key in self.keys
        )

    def repeats(self, row: Mapping[str, Scalar], query: str) -> bool:
        """Whether a row tells what the question says: the number of NB-0107 is NB-0107."""
        said = f" {normalise(query)} "
        return all(f" {normalise(str(row.get(key.name)))} " in said for key in self.keys)

    def is_in(self, row: Mapping[str, Scalar]) -> bool:
        """Whether a row tells all of the facts."""
        return all(row.get(key.name) is not None for key in self.keys)


def _last_word(name: str) -> str:
    """The last telling word of a key's name."""
    words = [word for word in name.split("_") if word not in WEAK_WORDS and word not in _JOINTS and len(word) > 1]
    return words[-1] if words else name


def _forms(name: str) -> set[str]:
    """The forms of the last telling word of a key's name, and the name as one word."""
    return {name.replace("_", ""), _last_word(name), *inflections(_last_word(name))}


def look_up(program: str, domain: Domain) -> LookUp | None:
    """The look-up that a SELECT is.

    None where it is several, or sorts, counts, groups or joins, tells the names of rows of some kind, or says yes or
    no: no near key is mistaken there. A total, an average or the most of its rows is a fact of them together.
    """
    if "\n" in program:
        return None
    try:
        tree = parse_select(program)
        if not isinstance(tree, exp.Select) or any(tree.args.get(one) for one in ("order", "group", "limit")):
            return None
        statement = Statement(tree, domain)
    except ParseError:
        return None
    outputs = statement.outputs
    if len(outputs) == 1 and isinstance(outputs[0], exp.Sum | exp.Avg | exp.Max | exp.Min):
        outputs = [outputs[0].this]
    places = [statement.place_of(one) for one in outputs if isinstance(one, exp.Column)]
    known = [one for one in places if one is not None]
    functions = {function.name for function, _ in known}
    if len(known) < len(outputs) or len(functions) != 1 or any(key.kind == "flag" for _, key in known):
        return None
    function, keys = known[0][0], [key for _, key in known]
    subject = function.exact_keys[function.subject[0]]
    own = {subject.name, domain.kinds[subject.entity].id} if subject.entity in domain.kinds else {subject.name}
    fact = LookUp(function, keys, any(key.name in own for key in keys))
    is_of_names_alone = all(one.is_name for one in statement.comparisons())
    return None if fact.is_of_names and not is_of_names_alone else fact


def tells_all(program: str, catalogue: Catalogue) -> bool:
    """Whether a program's last statement tells no fact in particular of the rows that it names."""
    last = parse_each(program, catalogue.spellings)[-1].statement
    return isinstance(last, Query) and isinstance(last.source, Call) and not last.steps and last.aggregate is None


async def choose_column(llm: LLM, query: str, fact: LookUp, row: Mapping[str, Scalar], allow_s: float) -> Completion:
    """The generator's choice of the key that tells what a question asks, `NO_COLUMN` among them.

    Args:
        row: that was found.

    Raises:
        ServiceFailure: it gave no reply.
    """
    names = [key.name for key in fact.function.keys]
    found = [f"{key.name} = {one_line(str(row.get(key.name)))[:MAX_VALUE_CHARS]}" for key in fact.keys]
    messages = chat(CHECK, columns="; ".join(names), found="; ".join(found), question=as_data(query))
    constraint = Constraint(choice=(*names, NO_COLUMN))
    return await llm.chat(messages, max_tokens=MAX_TOKENS, allow_s=allow_s, constraint=constraint)
