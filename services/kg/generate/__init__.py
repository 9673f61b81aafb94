"""Question to program: four writers behind one interface."""

from services.kg.entities import NameIndex
from services.kg.generate.base import Writer, Written
from services.kg.generate.examples import load_library
from services.kg.generate.function_calling import FunctionCallingWriter
from services.kg.generate.program import ProgramWriter
from services.kg.generate.rules import RuleWriter
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter
from services.kg.generate.sql.writer import SqlWriter
from services.kg.language.catalogue import Catalogue
from services.kit.encoder import Encoder
from services.kit.llm import LLM

__all__ = ["Writer", "Written", "build_writers"]


def build_writers(
    llm: LLM,
    catalogue: Catalogue,
    names: NameIndex,
    encoder: Encoder | None,
    *,
    examples: int = 4,
    adapter: str = "kg-api",
    sql_adapter: str = "sql",
) -> dict[str, Writer]:
    """All writers by name; reads the library and embeds it, which takes a second.

    `examples` are shown to a question, those that the encoder finds nearest; without one the first of a domain.
    """
    library = load_library(catalogue)
    if encoder is not None:
        library.embed(encoder)
    spotter, values = Spotter(names.engine, catalogue), Values(names.engine)
    return {
        "program": ProgramWriter(llm, catalogue, library, k=examples, adapter=adapter, spotter=spotter),
        "function-calling": FunctionCallingWriter(llm, catalogue, library, k=examples, spotter=spotter),
        "sql": SqlWriter(llm, catalogue, names, values, spotter, sql_adapter),
        "rules": RuleWriter(catalogue, spotter, values, names),
    }
