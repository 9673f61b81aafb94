"""A collection that follows a folder: what to add, replace, move and remove, by the digests of contents alone.

Nothing is kept here: what the collection says of its documents is what was done so far, so that the same command goes
on after an interruption. What is taken away goes last.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proto.collections import MAX_LISTED, MAX_MOVES, DocumentInfo, Listing, Move
from services.cli.collections import CollectionClient
from services.cli.corpus import Read


@dataclass(slots=True)
class Plan:
    """What a folder and a collection differ in.

    Attributes:
        removed: ids of documents whose files are gone.
    """

    added: list[Read] = field(default_factory=list)
    replaced: list[Read] = field(default_factory=list)
    moved: list[tuple[DocumentInfo, Read]] = field(default_factory=list)
    removed: list[DocumentInfo] = field(default_factory=list)
    problems: list[Read] = field(default_factory=list)
    unchanged: int = 0


def held(client: CollectionClient, name: str, source: str) -> dict[str, DocumentInfo]:
    """The documents of a source that a collection has, by id."""
    found: dict[str, DocumentInfo] = {}
    after = ""
    while True:
        page = client.documents(name, Listing(limit=MAX_LISTED, after=after, source=source))
        found |= {document.id: document for document in page.documents}
        if not (after := page.next):
            return found


def plan(items: Iterable[Read], there: Mapping[str, DocumentInfo]) -> Plan:
    """Compare what was read with what is there.

    A file that cannot be read now keeps the document that was made of it. A document moves when its content is found
    under another id and its own is gone; of several with one content each moves once.
    """
    result = Plan()
    fresh: list[tuple[Read, str]] = []
    present: set[str] = set()
    for item in items:
        if item.id:
            present.add(item.id)
        if item.problem or not item.id:
            result.problems.append(item if item.problem else item.without_id())
            continue
        known = there.get(item.id)
        if known is None:
            fresh.append((item.without_text(), item.digest))
        elif known.digest == item.digest and known.state == "complete":
            result.unchanged += 1
        else:
            result.replaced.append(item.without_text())
    gone: defaultdict[tuple[str, str], list[DocumentInfo]] = defaultdict(list)
    for document in there.values():
        if document.id not in present:
            gone[document.digest, document.format].append(document)
    for item, digest in fresh:
        candidates = gone.get((digest, item.format), [])
        movable = next((one for one in candidates if one.state == "complete"), None)
        if movable is None:
            result.added.append(item)
        else:
            candidates.remove(movable)
            result.moved.append((movable, item))
    result.removed = [document for documents in gone.values() for document in documents]
    return result


def move(client: CollectionClient, name: str, moved: Sequence[tuple[DocumentInfo, Read]]) -> list[Read]:
    """Move documents; those that were not there any more come back, to be added."""
    lost: list[Read] = []
    for first in range(0, len(moved), MAX_MOVES):
        part = moved[first : first + MAX_MOVES]
        missing = set(client.move(name, [Move(id=old.id, to=item.id, url=item.url) for old, item in part]).missing)
        lost += [item for old, item in part if old.id in missing]
    return lost
