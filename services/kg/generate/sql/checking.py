"""The key of a look-up beside its question: a model that writes SQL takes a near column for one that is not there.

Asked for a statement it hardly ever replies NONE, and asked whether its statement is right it says yes. Given the names
of the columns alone, after examples where none of them tells what is asked, it chooses "none" for most such questions.
"""

import re
from functools import cache

from services.kg.generate.base import as_data
from services.kg.generate.program import PROMPTS
from services.kg.generate.rules.values import Values
from services.kg.generate.sql.schema import FEW_VALUES, FLAG
from services.kg.language.catalogue import Catalogue, Function, Key
from services.kg.language.parse import parse_each
from services.kg.language.tree import Call, Group, Project, Query, Sort
from services.kit.llm import LLM, Constraint, Message
from services.kit.prompts import Prompt
from services.kit.untrusted import one_line

NO_COLUMN = "none"
MAX_TOKENS = 24
# Words that begin alike up to here are one: volunteer and volunteered.
SAME_STEM_CHARS = 4
MAX_VALUES_CHARS = 60
_WORD = re.compile(r"[a-z]+")


def looked_up(program: str, catalogue: Catalogue, domain: str) -> tuple[Function, Key] | None:
    """The function and the key by which a program's last statement tells a fact of some rows.

    None where it sorts, counts or groups, or tells the rows' own names: no near key is mistaken there.
    """
    last = parse_each(program, catalogue.spellings)[-1].statement
    if not isinstance(last, Query) or not isinstance(last.source, Call) or last.aggregate == "len":
        return None
    keys = [one.keys for one in last.steps if isinstance(one, Project)]
    if len(keys) != 1 or len(keys[0]) != 1 or any(isinstance(one, Sort | Group) for one in last.steps):
        return None
    function = catalogue.function(last.source.function, domain)
    key = function.exact_keys.get(keys[0][0])
    return (function, key) if key is not None and key.name not in function.subject[:1] else None


def is_said(key: str, query: str) -> bool:
    """Whether a question has a word of a key's name, in any form: "loaded" of `loaded_by`, "email" of `e_mail`."""
    said, own = _WORD.findall(query.lower()), _WORD.findall(key)
    stems = {word[:SAME_STEM_CHARS] for word in said if len(word) >= SAME_STEM_CHARS}
    return key.replace("_", "") in said or any(word[:SAME_STEM_CHARS] in stems for word in own)


async def is_column_asked(llm: LLM, query: str, function: Function, columns: str, allow_s: float) -> bool:
    """Whether the generator finds what a question asks for among the columns of a function.

    Raises:
        ServiceFailure: the generator gave no reply.
    """
    prompt, examples = _prompt()
    system, question = prompt.fill(columns=columns, question=as_data(query))
    names = tuple(key.name for key in function.keys)
    completion = await llm.chat(
        [system, *examples, question],
        max_tokens=MAX_TOKENS,
        allow_s=allow_s,
        constraint=Constraint(choice=(*names, NO_COLUMN)),
    )
    return completion.text != NO_COLUMN


def columns_text(function: Function, values: Values) -> str:
    """The columns of a function in a prompt, with their units or their values where these are few.

    Blocks for some milliseconds a column.
    """
    return "; ".join(
        f"{key.name} ({about})" if (about := _about(function, key, values)) else key.name for key in function.keys
    )


def _about(function: Function, key: Key, values: Values) -> str:
    if key.kind == "flag":
        return FLAG
    if key.kind != "text" or key.entity or key.name in function.subject:
        return key.unit
    texts = values.first(function, key.name, FEW_VALUES + 1)
    return one_line(", ".join(texts))[:MAX_VALUES_CHARS] if len(texts) <= FEW_VALUES else ""


@cache
def _prompt() -> tuple[Prompt, list[Message]]:
    return PROMPTS.prompt("column"), PROMPTS.turns("column_examples")
