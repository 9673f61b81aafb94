"""The cache: bounded in bytes and age, in memory or in a file that outlives it."""

from pathlib import Path

import pytest

from services.searcher.cache import Cache
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
    cache._thread.submit(cache._database.execute, "DROP TABLE entry").result()
    await cache.put("a", b"x")
    assert await cache.get("a") is None
    cache.close()
