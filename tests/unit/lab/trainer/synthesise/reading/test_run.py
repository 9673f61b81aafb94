"""A run: appended, resumed after any kill, ended by time, by goal or by a server that is gone."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.trainer import pairs
from lab.trainer.errors import BadDataset, WriteFailed
from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading.briefs import Brief
from lab.trainer.synthesise.reading.run import MAX_FAILURES, Files, Progress, ServerGone, report, sample, write
from lab.trainer.synthesise.reading.writer import Outcome, Writer
from services.kit.errors import BadReply, ServiceFailure

pytestmark = pytest.mark.anyio


class Scripted(Writer):
    """Makes one item with an answer and one without of each brief, and knows which it was given."""

    model = "scripted"

    def __init__(self, fail: Callable[[int], bool] = lambda _: False) -> None:
        self.fail = fail
        self.calls = 0
        self.briefs: list[str] = []

    async def write(self, identifier: str, brief: Brief) -> Outcome:
        await asyncio.sleep(0)
        self.calls += 1
        if self.fail(self.calls):
            raise BadReply("generator", "scripted")
        self.briefs.append(identifier)
        passage = f"{brief.name} is green."
        about: dict[str, Any] = {"kind": brief.kind, "title": brief.title, "passage": passage}
        question = f"Which colour has {brief.name}?"
        items = [
            Pair(id=f"{identifier}-q0", question=question, answer="green", start=passage.index("green"), **about),
            Pair(id=f"{identifier}-open0", question="Who is its owner?", **about),
        ]
        return Outcome(items, Counter({"asked twice": 1}))


def opened(path: Path) -> Files:
    data = Files(path)
    path.parent.mkdir(exist_ok=True)
    data.open()
    return data


async def go(
    writer: Scripted,
    path: Path,
    *,
    goal: int = 20,
    limit_s: float = 0.0,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Files:
    data = opened(path)
    await write(writer, data, seed=7, goal=goal, limit_s=limit_s, briefs=2, on_progress=on_progress)
    return data


async def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "prose.jsonl"
    first, second = Scripted(), Scripted()
    await go(first, path, goal=10)
    kept = path.read_bytes()
    data = await go(second, path, goal=30)
    assert path.read_bytes().startswith(kept)
    assert not set(first.briefs) & set(second.briefs)
    assert {int(name.partition("-")[2]) for name in first.briefs + second.briefs} == set(range(data.items // 2))
    assert len({item.id for item in pairs.read([path])}) == data.items >= 30
    assert data.rejected == {"asked twice": data.items // 2}


async def test_after_a_kill_a_torn_line_is_written_anew_and_no_journal_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    data = await go(Scripted(), path, goal=10)
    whole = path.read_bytes()
    for file in (path, data.journal):
        with file.open("ab") as tail:
            tail.write(b'{"id": "7-99-q0", "kind": "n\xc3')
    resumed = opened(path)
    assert (path.read_bytes(), resumed.items, resumed.done) == (whole, data.items, data.done)
    data.journal.unlink()
    assert opened(path).done == data.done


async def test_a_brief_of_which_nothing_was_kept_is_done(tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    opened(path).add("7-0", "scripted", Outcome(rejected=Counter({"passage's length": 1})))
    writer = Scripted()
    await go(writer, path, goal=2)
    assert "7-0" not in writer.briefs


@pytest.mark.parametrize("line", ["no JSON", "{}", '{"id": "x", "passage": "a", "question": "b"}'])
async def test_another_file_is_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "prose.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadDataset, match=r"prose\.jsonl:1"):
        opened(path)
    assert path.read_text() == line + "\n"


async def test_it_ends_by_time(tmp_path: Path) -> None:
    seen: list[Progress] = []
    data = await go(Scripted(), tmp_path / "prose.jsonl", goal=10**9, limit_s=0.05, on_progress=seen.append)
    assert 0 < data.items < 10**9
    last = seen[-1]
    assert last.items == last.fresh == data.items
    assert last.left_s is not None
    assert last.per_minute > 0


async def test_a_server_that_is_gone_ends_it_and_what_was_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    # A failure among good replies is passed over.
    writer = Scripted(lambda call: call == 2 or call > 5)
    with pytest.raises(ServerGone) as raised:
        await go(writer, path)
    assert isinstance(raised.value.__cause__, ServiceFailure)
    assert writer.calls <= 5 + MAX_FAILURES + 2
    assert len(pairs.read([path])) == 8


async def test_a_full_disk_is_told(tmp_path: Path) -> None:
    data = opened(tmp_path / "prose.jsonl")
    data.path = tmp_path / "missing" / "prose.jsonl"
    with pytest.raises(WriteFailed, match=r"prose\.jsonl"):
        await write(Scripted(), data, seed=7, goal=9, limit_s=0, briefs=2, on_progress=lambda _: None)


async def test_the_report_tells_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    data = await go(Scripted(), path)
    content = report(data, "cragmesh train prose")
    assert content["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert content["models"] == ["scripted"]
    assert content["lines"] == 2 * int(str(content["answerable"])) == 2 * int(str(content["passages"])) == data.items
    assert content["ways"] == {"q": data.items // 2, "open": data.items // 2}
    assert content["rejected"] == {"asked twice": data.items // 2}
    json.dumps(content)


async def test_the_sample_is_of_whole_lines_and_stays_with_the_ids(tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    await go(Scripted(), path, goal=60)
    few, more = (sample(path, number).splitlines() for number in (5, 12))
    assert (len(few), len(more)) == (5, 12)
    assert set(few) < set(more) < set(path.read_bytes().splitlines())
    assert sorted(sample(path, 1_000).splitlines()) == sorted(path.read_bytes().splitlines())
