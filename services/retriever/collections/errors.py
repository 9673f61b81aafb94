"""Errors of collections, beside those of the kit."""

from services.kit.errors import MeshError, NotFound


class NoSuchCollection(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is no collection {name!r}")


class CollectionConflict(MeshError):
    """What was asked for contradicts what the collection was built with; nothing was changed."""

    status = 409
    title = "Conflict"
