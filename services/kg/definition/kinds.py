"""Kinds of names out of a domain's files; a part whose SQL cannot be selected raises BrokenPart."""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import RootModel
from sqlalchemy import TextualSelect

from services.kg.definition.folder import Folder
from services.kg.definition.functions import build
from services.kg.definition.schema import KindPart, NameWords, Popularity
from services.kg.definition.views import Sources, read_query, select_of
from services.kg.language.catalogue import Kind, NameRules
from services.kg.store.names import normalise, squashes


class AliasesFile(RootModel[dict[str, tuple[str, ...]]]):
    """Main name -> other names."""


def kind_of(
    name: str, part: KindPart, folder: Folder, sources: Sources, hook: Callable[[str], Callable[..., Any]]
) -> Kind:
    """A kind of names."""
    also = "".join(f', "{column}" AS other_{number}' for number, column in enumerate(part.also))
    where = f" WHERE {part.where}" if part.where else ""
    aliases = folder.model(part.aliases, AliasesFile)[0].root if part.aliases else {}
    # The same parser checks it as the file's own SQL.
    sql = f'SELECT "{part.id}" AS id, "{part.name}" AS name{also} FROM "{part.table}"{where}'  # noqa: S608
    values: dict[str, Any] = {"table": part.table, "id": part.id, "key": part.name, "rules": _rules(part, folder)}
    values |= {"entities": select_of(read_query(sql, sources), sources), "also": tuple(part.also.values())}
    values |= {"aliases": {normalise(main): others for main, others in aliases.items()}}
    values |= {"popularity": tuple((one, _numbers(one, part, sources)) for one in part.popularity)}
    values |= {"spellings": hook(part.python) if part.python else None}
    return build(Kind, part, name=name, **values)


def _rules(part: KindPart, folder: Folder) -> NameRules:
    listed = folder.lines(part.generic) if isinstance(part.generic, str) else part.generic
    return NameRules(
        **{name: getattr(part, name) for name in NameWords.model_fields},
        common_words=folder.lines(part.common) if part.common else frozenset(),
        generic=_squashed(listed),
        never=_squashed(line for line in listed if line.startswith("!")),
    )


def _numbers(part: Popularity, kind: KindPart, sources: Sources) -> TextualSelect:
    sql = part.value or f'SELECT "{kind.id}" AS id, "{part.column}" AS number FROM "{kind.table}"'  # noqa: S608
    return select_of(read_query(sql, sources), sources)


def _squashed(names: Iterable[str]) -> frozenset[str]:
    return frozenset(squashes(normalise(name.removeprefix("!")))[0] for name in names)
