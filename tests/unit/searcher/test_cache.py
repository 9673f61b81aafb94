"""The cache: bounded in bytes and age, in memory or in a file that outlives it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from services.searcher.cache import _OVER, Cache
from tests.unit.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("on_disk", [False, True])
async def test_the_oldest_make_room_and_the_aged_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr("services.searcher.cache.time.time", clock)
    cache = Cache(tmp_path / "cache" if on_disk else None, max_bytes=25, age_s=10)
    for key in ("a", "b", "c"):
        await cache.put(key, b"x" * 9)
        clock.now += 1
    assert [await cache.get(key) for key in ("a", "b", "c")] == [None, b"x" * 9, b"x" * 9]
    clock.now += 8
    assert (await cache.get("b"), await cache.get("c")) == (None, b"x" * 9)
    await cache.put("huge", b"x" * 30)
    assert await cache.get("huge") is None
    cache.close()
    if on_disk:
        again = Cache(tmp_path / "cache", max_bytes=25, age_s=1e6)
        assert await again.get("b") is None, "it was deleted and not only hidden"
        again.close()


@pytest.mark.parametrize(("max_bytes", "age_s"), [(0, 10.0), (100, 0.0)])
async def test_nothing_is_kept_where_none_is_wanted(max_bytes: int, age_s: float) -> None:
    cache = Cache(None, max_bytes=max_bytes, age_s=age_s)
    await cache.put("a", b"x")
    assert await cache.get("a") is None
    cache.close()


async def test_a_database_that_fails_is_missed(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", max_bytes=100, age_s=10)
    cache._thread.submit(cache._database.execute, "DROP TABLE reply").result()
    await cache.put("a", b"x")
    assert await cache.get("a") is None
    cache.close()


async def test_no_write_reads_the_values_of_others() -> None:
    cache = Cache(None, max_bytes=100, age_s=10)

    def plan() -> list[str]:
        rows = cache._database.execute(f"EXPLAIN QUERY PLAN {_OVER}", (1,)).fetchall()
        return [row[3] for row in rows if "reply" in row[3]]

    plans = cache._thread.submit(plan).result()
    assert any("COVERING INDEX reply_by_age" in one for one in plans)
    cache.close()


@pytest.mark.parametrize("content", [b"no database" * 1_000, None])
async def test_a_file_that_cannot_be_used_is_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / ("cache" if content else "no/such/folder")
    if content:
        file.write_bytes(content)
    cache = Cache(file, max_bytes=100, age_s=10)
    await cache.put("a", b"x")
    assert await cache.get("a") == b"x"
    cache.close()


async def test_a_table_of_an_earlier_release_makes_room(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cache")) as database, database:
        database.execute("CREATE TABLE entry (key TEXT PRIMARY KEY, value BLOB, stored REAL, size INTEGER)")
    cache = Cache(tmp_path / "cache", max_bytes=100, age_s=10)
    await cache.put("a", b"x")
    assert await cache.get("a") == b"x"
    cache.close()
