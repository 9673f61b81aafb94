"""Snapshots of a Qdrant server's collections, which it writes to a folder of its own:

python -m services.retriever.collections.backup --keep 3
"""

import argparse

from qdrant_client import QdrantClient

from services.retriever.settings import RetrieverSettings

# A snapshot is a copy of all that a collection holds.
TIMEOUT_S = 1_800


def snapshot(client: QdrantClient, keep: int) -> dict[str, str]:
    """The new snapshot of each collection, by the collection's name; the newest `keep` of each remain.

    Raises:
        UnexpectedResponse: the server refuses.
        ResponseHandlingException: it does not answer.
    """
    made = {}
    for name in (collection.name for collection in client.get_collections().collections):
        created = client.create_snapshot(name, wait=True)
        if created is None:
            raise RuntimeError(f"no snapshot of {name} was made")
        made[name] = created.name
        ages = sorted(client.list_snapshots(name), key=lambda found: found.creation_time or "", reverse=True)
        for old in ages[keep:]:
            client.delete_snapshot(name, old.name, wait=True)
    return made


def main() -> None:
    """Take the snapshots of the server that the retriever's settings name, and say them."""
    parser = argparse.ArgumentParser(prog="python -m services.retriever.collections.backup")
    parser.add_argument("--keep", type=int, default=3, help="snapshots of each collection that remain")
    arguments = parser.parse_args()
    settings = RetrieverSettings()
    if settings.qdrant_url is None or arguments.keep < 1:
        parser.error("CRAGMESH_QDRANT_URL names a server, and --keep is 1 at least")
    # The client would warn of an older server, which the readiness of the retriever already does.
    client = QdrantClient(
        str(settings.qdrant_url), api_key=settings.qdrant_api_key or None, timeout=TIMEOUT_S, check_compatibility=False
    )
    for name, made in snapshot(client, arguments.keep).items():
        print(f"{name}: {made}")


if __name__ == "__main__":
    main()
