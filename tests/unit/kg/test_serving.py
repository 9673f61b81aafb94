"""A service goes over to the graph that was loaded while it runs; one that is broken changes nothing."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Engine, text

from services.kg.answering import Answering
from services.kg.domains import CATALOGUE
from services.kg.load import load
from services.kg.serving import ServedGraph, Serving, open_graph
from services.kg.store.engine import open_store
from services.kit.concurrency import beside
from services.kit.errors import ServiceUnavailable
from tests.unit.kg.conftest import DIALECTS, database
from tests.unit.kg.graph import disposed

pytestmark = pytest.mark.anyio
EVERY_S, SOON_S = 0.01, 30


class Closable:
    closed = False

    def close(self) -> None:
        self.closed = True


def put(url: str, folder: Path, title: str) -> None:
    row = {"table": "movie", "row": {"movie_id": title, "title": title, "release_date": "1995-12-15"}}
    file = folder / f"{title}.jsonl"
    file.write_text(json.dumps(row))
    with disposed(open_store(url, read_only=False)) as engine:
        load(file, engine)


def titles(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(text("SELECT title FROM movie")))


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while True:
            if happened():
                return
            await asyncio.sleep(EVERY_S)


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[Serving]:
    async def graph() -> ServedGraph:
        store = await asyncio.to_thread(open_graph, url, CATALOGUE)
        return ServedGraph(store, cast(Answering, Closable()))

    served = Serving(url, await graph(), graph, leave_s=0.0)
    try:
        async with beside(served.follow(EVERY_S)):
            yield served
    finally:
        served.graph.close()


class ReadAhead(Closable):
    """An `Answering` whose generator is not there at first."""

    def __init__(self) -> None:
        self.asked = 0

    async def read_ahead(self, _: Any) -> None:
        self.asked += 1
        if self.asked == 1:
            raise ServiceUnavailable("generator")


async def test_the_generator_reads_the_tables_of_each_graph_as_soon_as_it_is_there() -> None:
    first, second = ReadAhead(), ReadAhead()
    served = Serving("sqlite:///", ServedGraph(cast(Any, None), cast(Answering, first)), cast(Any, None), leave_s=0.0)
    async with beside(served.read_ahead(cast(Any, None), EVERY_S)):
        assert not served.has_read
        await until(lambda: served.has_read)
        served.graph = ServedGraph(cast(Any, None), cast(Answering, second))
        await until(lambda: second.asked == 2)
        await asyncio.sleep(5 * EVERY_S)
    assert (first.asked, second.asked) == (2, 2)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_was_loaded_meanwhile_is_served_and_the_graph_before_is_closed(dialect: str, tmp_path: Path) -> None:
    url = database(dialect, tmp_path / "graph.sqlite")
    put(url, tmp_path, "Heat")
    async with serving(url) as served:
        before: Any = served.graph
        assert "1 rows" in before.store.detail
        await asyncio.to_thread(put, url, tmp_path, "Ronin")
        await until(lambda: served.graph is not before and before.answering.closed)
        assert titles(served.graph.store.engine) == {"Heat", "Ronin"}
        assert "2 rows" in served.graph.store.detail


async def test_a_file_that_is_no_graph_changes_nothing_until_one_is_put_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = tmp_path / "graph.sqlite", tmp_path / "other.sqlite"
    put(f"sqlite:///{file}", tmp_path, "Heat")
    put(f"sqlite:///{other}", tmp_path, "Ronin")
    async with serving(f"sqlite:///{file}") as served:
        before = served.graph
        broken = tmp_path / "broken"
        broken.write_text("no database")
        os.replace(broken, file)
        await until(lambda: "cannot be read" in capsys.readouterr().out)
        assert served.graph is before
        assert titles(before.store.engine) == {"Heat"}
        os.replace(other, file)
        await until(lambda: served.graph is not before)
        assert titles(served.graph.store.engine) == {"Ronin"}


async def test_a_file_that_is_away_for_a_moment_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, url = tmp_path / "graph.sqlite", f"sqlite:///{tmp_path / 'graph.sqlite'}"
    put(url, tmp_path, "Heat")
    async with serving(url) as served:
        before = served.graph
        demos: list[str] = []
        monkeypatch.setattr("services.kg.serving.ensure_demo", demos.append)
        file.rename(tmp_path / "away.sqlite")
        await asyncio.sleep(30 * EVERY_S)
        assert served.graph is before
    assert demos == [], "which would be served in its place"
