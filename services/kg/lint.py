"""What is wrong with a domain's folder, and what in it will not be understood: `cragmesh kg domain check`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from services.kg.definition.domain import read_domain
from services.kg.definition.folder import BrokenDomain, Content, Fault
from services.kg.errors import KgError
from services.kg.generate.rules.words import Words
from services.kg.language.bind import Binder
from services.kg.language.catalogue import Catalogue, Domain, Function, Key
from services.kg.language.parse import parse

WORDS = "words.yaml"
DOMAIN = "domain.yaml"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, with which no service starts, or a warning, with which questions go unanswered."""

    place: Fault
    fault: bool

    def __str__(self) -> str:
        key = f"{self.place.key}: " if self.place.key else ""
        return f"{self.place.file}:{self.place.line}: {'' if self.fault else 'warning: '}{key}{self.place.reason}"


def lint(folder: Path) -> list[Finding]:
    """Everything that can be said of a domain's folder; faults first, and warnings only of a folder without any."""
    try:
        domain = read_domain(folder)
        words = domain.read(WORDS, Words) or Words()
    except BrokenDomain as error:
        return [Finding(fault, True) for fault in error.faults]
    faults = [*_words_faults(domain, words), *_example_faults(domain)]
    if faults:
        return [Finding(fault, True) for fault in faults]
    return [Finding(one, False) for one in (*_kind_warnings(domain), *_key_warnings(domain, words))]
