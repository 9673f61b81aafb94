"""Faults of a domain's folder, and warnings of questions that will go unanswered: `cragmesh kg domain check`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.kg.definition.domain import read_domain, with_domain
from services.kg.definition.folder import BrokenDomain, Content, Fault
from services.kg.domains import CATALOGUE
from services.kg.errors import KgError
from services.kg.generate.examples import Library, load_library
from services.kg.generate.rules.lexicon import FILE as WORDS
from services.kg.generate.rules.lexicon import Lexicon, read_words
from services.kg.generate.rules.roles import subject_of
from services.kg.language.bind import Binder
from services.kg.language.catalogue import NUMERIC, Catalogue, Domain, Function, Key
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query
from services.kg.load.schema import sources_of

DOMAIN = "domain.yaml"
TABLES = "tables.yaml"
EXAMPLES = "examples.jsonl"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, with which no service starts, or a warning, with which questions go unanswered."""

    place: Fault
    fault: bool

    def __str__(self) -> str:
        key = f"{self.place.key}: " if self.place.key else ""
        return f"{self.place.file}:{self.place.line}: {'' if self.fault else 'warning: '}{key}{self.place.reason}"


def lint(folder: Path) -> list[Finding]:
    """The faults of a domain's folder; its warnings, where it has no faults."""
    try:
        domain = read_domain(folder)
        # Beside the bundled ones, for names in common.
        catalogue = with_domain(CATALOGUE, domain)
        words = read_words(domain)
        sources_of(catalogue)
        library = load_library(catalogue)
    except BrokenDomain as error:
        return [Finding(fault, True) for fault in error.faults]
    content = domain.folder.content(DOMAIN)
    lexicon = Lexicon(catalogue, domain.name, words)
    faults = list(_examples(catalogue, domain, library))
    warnings = [*_kinds(domain, content), *_keys(domain, lexicon, content), *_tables(catalogue, domain)]
    return [Finding(one, True) for one in faults] or [Finding(one, False) for one in warnings]


def _examples(catalogue: Catalogue, domain: Domain, library: Library) -> Iterator[Fault]:
    """Worked examples whose programs do not bind: a model would learn their errors."""
    if not domain.folder.has(EXAMPLES):
        return
    for number, example in enumerate(library.examples[domain.name], 1):
        binder = Binder(catalogue, domain.name)
        for parsed in parse_each(example.program):
            try:
                if parsed.error is not None:
                    raise parsed.error
                if isinstance(parsed.statement, Query):
                    binder.bind(parsed.statement)
            except KgError as error:
                yield Fault(str(domain.folder.place / EXAMPLES), number, "program", str(error))


def _kinds(domain: Domain, content: Content) -> Iterator[Fault]:
    """Kinds that no parameter takes, and functions whose rows have no names of a kind."""
    taken = {kind for function in domain.functions for one in function.parameters for kind in one.entities}
    for kind in domain.kinds:
        if kind not in taken:
            yield content.fault(("kinds", kind), "no function takes a name of this kind")
    for function in domain.functions:
        subject = subject_of(function)
        if not subject.entity and not function.dynamic:
            path = ("functions", function.name, "keys", subject.name)
            yield content.fault(path, "it names the rows and is of no kind: no question can name one")


def _keys(domain: Domain, lexicon: Lexicon, content: Content) -> Iterator[Fault]:
    """Keys without words beside their names, and words that ask for two keys of one function."""
    for function in domain.functions:
        if function.dynamic or function.hidden:
            continue
        keys_of_phrases: dict[str, str] = {}
        for key in function.keys:
            own = lexicon.key(function.name, key.name)
            path = ("functions", function.name, "keys", key.name)
            has_words = own.words or own.more or own.less or own.values or key.aliases or key.label or key.entity
            if key != subject_of(function) and not has_words:
                yield content.fault(path, f'only "{key.words}" asks for it: {WORDS} may say what else people call it')
            for phrase in lexicon.plain(function.name, key.name):
                other = keys_of_phrases.setdefault(phrase, key.name)
                if other != key.name and not phrase.startswith("how "):
                    yield content.fault(path, f'"{phrase}" also asks for {other}, which is taken')
        adjectives = Counter(one for key in function.keys for one in _more(lexicon, function, key))
        for adjective, count in adjectives.items():
            if count > 1:
                keys = [key.name for key in function.keys if adjective in _more(lexicon, function, key)]
                reason = f'"{adjective}" means {keys[0]}, unless {" or ".join(keys[1:])} is named'
                yield content.fault(("functions", function.name, "keys", keys[1]), reason)


def _more(lexicon: Lexicon, function: Function, key: Key) -> tuple[str, ...]:
    return lexicon.key(function.name, key.name).more if key.kind in NUMERIC else ()


def _tables(catalogue: Catalogue, domain: Domain) -> Iterator[Fault]:
    """Tables that no mapping fills; a CSV file of the same name and header still can."""
    filled = {
        action.table
        for mapping in sources_of(catalogue).mappings
        if mapping.source.domain == domain.name
        for rule in mapping.source.all_rules()
        for action in rule.rows
    }
    content = domain.folder.content(TABLES)
    for table in domain.tables:
        if table not in filled:
            yield content.fault((table,), f"no file of sources/ fills it; a {table}.csv with its columns does")
