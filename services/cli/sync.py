"""A collection that follows a folder: what to add, replace, move and remove, by the digests of contents alone.

The collection's own list of documents is the only state, so that the same command goes on after an interruption.
Documents are removed last.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proto.collections import MAX_LISTED, MAX_MOVES, DocumentInfo, Listing, Move
from services.cli.caller import Refused
from services.cli.collections import NOT_FOUND, CollectionClient
from services.cli.corpus import Entry


@dataclass(slots=True)
class Plan:
    """The differences of a folder from a collection; its entries, of which there may be a million, have no text."""

    added: list[Entry] = field(default_factory=list)
    replaced: list[Entry] = field(default_factory=list)
    moved: list[tuple[DocumentInfo, Entry]] = field(default_factory=list)
    removed: list[DocumentInfo] = field(default_factory=list)
    problems: list[Entry] = field(default_factory=list)
    unchanged: int = 0


def stored(client: CollectionClient, name: str, source: str) -> dict[str, DocumentInfo]:
    """The documents of a source that a collection has, by id; none where there is no collection."""
    documents: dict[str, DocumentInfo] = {}
    after = ""
    while True:
        try:
            page = client.documents(name, Listing(limit=MAX_LISTED, after=after, source=source))
        except Refused as error:
            if error.problem.status != NOT_FOUND:
                raise
            return {}
        documents |= {document.id: document for document in page.documents}
        if not (after := page.next):
            return documents


def compare(entries: Iterable[Entry], documents: Mapping[str, DocumentInfo]) -> Plan:
    """The plan that makes a collection's documents those of a folder's entries.

    A file that cannot be read now keeps its document, and where records cannot be told, or a link leads elsewhere,
    nothing is removed: their documents may be among those that seem gone. A document moves when its id is gone and
    another id has its content; of several documents with one content each moves once.
    """
    plan = Plan()
    added: list[tuple[Entry, str]] = []
    ids: set[str] = set()
    hidden = False
    for entry, digest in map(_with_digest, entries):
        hidden |= entry.hides
        if entry.problem:
            plan.problems.append(entry)
        elif entry.content is None:
            # The bytes of a packed file.
            continue
        elif not entry.id:
            hidden = True
            plan.problems.append(Entry(entry.name, entry.nbytes, problem="a record without an id cannot be followed"))
        elif (document := documents.get(entry.id)) is None:
            added.append((entry.copy_with(text=""), digest))
        elif document.digest == digest and document.state == "complete":
            plan.unchanged += 1
        else:
            plan.replaced.append(entry.copy_with(text=""))
        ids.add(entry.id)
    gone: defaultdict[tuple[str, str], list[DocumentInfo]] = defaultdict(list)
    for document in documents.values():
        if document.id not in ids:
            gone[document.digest, document.format].append(document)
    for entry, digest in added:
        candidates = gone.get((digest, entry.format), [])
        movable = next((one for one in candidates if one.state == "complete"), None)
        if movable is None:
            plan.added.append(entry)
        else:
            candidates.remove(movable)
            plan.moved.append((movable, entry))
    plan.removed = [document for group in gone.values() for document in group]
    if hidden and plan.removed:
        kept = f"{len(plan.removed):,} documents that are not there are kept: they may be in what is skipped"
        plan.problems.insert(0, Entry("removed", 0, problem=kept))
        plan.removed = []
    return plan


def _with_digest(entry: Entry) -> tuple[Entry, str]:
    """An entry with the digest of what is sent; a file that cannot be opened is a problem."""
    try:
        return entry, entry.digest
    except OSError as error:
        problem = error.strerror or type(error).__name__
        return Entry(entry.name, entry.nbytes, problem=problem, place=entry.id), ""


def move(client: CollectionClient, name: str, moves: Sequence[tuple[DocumentInfo, Entry]]) -> list[Entry]:
    """Move documents; returns the entries whose documents are gone by now, to be added."""
    lost: list[Entry] = []
    for first in range(0, len(moves), MAX_MOVES):
        part = moves[first : first + MAX_MOVES]
        missing = set(client.move(name, [Move(id=old.id, to=entry.id, url=entry.url) for old, entry in part]).missing)
        lost += [entry for old, entry in part if old.id in missing]
    return lost
