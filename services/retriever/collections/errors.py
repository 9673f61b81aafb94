"""Errors of collections, beside those of the kit."""

from services.kit.errors import MeshError, NotFound


class NoSuchCollection(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is no collection {name!r}")


class NoSuchDocument(NotFound):
    def __init__(self, collection: str, document: str) -> None:
        super().__init__(f"the collection {collection!r} has no document {document!r}")


class CollectionConflict(MeshError):
    """The request contradicts the collection's build; nothing was changed."""

    status = 409
    title = "Conflict"
