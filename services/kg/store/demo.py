"""The demo graph in a store that is missing: a first start needs no preparation."""

import os
from pathlib import Path

from sqlalchemy import make_url

from services.kg.load import load
from services.kg.store.engine import open_store


def ensure_demo(url: str) -> None:
    """Make a missing SQLite file with the demo graph.

    The file is written beside its place and then moved: of two services that start at once neither sees half of it.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database or Path(parsed.database).exists():
        return
    target = Path(parsed.database).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    engine = open_store(f"sqlite:///{partial}", read_only=False)
    try:
        load("demo", engine)
    finally:
        engine.dispose()
    partial.replace(target)
