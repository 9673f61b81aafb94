"""Shares of work: each item is in one, wherever it is asked."""

import pytest

from services.kit.shard import WHOLE, Shard

IDS = [f"document {number}" for number in range(400)]


def test_each_id_is_in_one_share_and_shares_are_of_a_size() -> None:
    held = [list(Shard(index, 4).of_items(IDS, str)) for index in range(4)]
    assert sorted(id for share in held for id in share) == sorted(IDS)
    assert all(70 < len(share) < 130 for share in held)
    assert list(WHOLE.of_items(IDS, str)) == IDS
    # The same in every process, for good: a resumed shard must find its own.
    assert Shard(2, 4).holds("document 0")


@pytest.mark.parametrize(
    ("text", "job", "shard"),
    [("", None, WHOLE), ("0/4", None, Shard(0, 4)), ("3/4", 1, Shard(3, 4)), ("4", 2, Shard(2, 4)), ("", 2, WHOLE)],
)
def test_shares_are_named_by_the_option_or_by_the_job(text: str, job: int | None, shard: Shard) -> None:
    assert Shard.of(text, job) == shard


@pytest.mark.parametrize("text", ["4/4", "-1/4", "0/0", "a/4", "1/b", "4", "1/"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="0/"):
        Shard.of(text)
