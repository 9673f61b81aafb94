"""A retriever killed while files wait that it has promised to write: the next one writes them, and names the broken."""

import asyncio
from pathlib import Path

import pytest

from tests.unit.retriever.collections.killed import run

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(400)]


async def test_no_promised_file_is_lost_by_a_kill(tmp_path: Path) -> None:
    outcome = await asyncio.to_thread(run, tmp_path, 20)
    assert outcome.lost == []
    assert (outcome.complete, outcome.named) == (18, 2)
