"""Made-up questions with passages: the same for a seed, in their shares, each answer true to its text."""

import re
from collections import Counter
from datetime import UTC, datetime

import pytest

from lab.trainer.synthesise import answers
from lab.trainer.synthesise.engine import Engine
from lab.trainer.synthesise.evidence import MAX_CHARS, MISSING, Evidence
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.record import Record
from services.gateway.normalize import INVALID, UNKNOWN

# A world and hundreds of programs take seconds of one core, and minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)
COUNT = 200


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(answers.generate(COUNT, 1))


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (list(answers.generate(8, seed, "music")) for seed in (1, 1, 2))
    assert first == again != other


def test_kinds_and_sources_come_in_their_shares(records: list[Record]) -> None:
    assert len({record.query.lower() for record in records}) == COUNT
    kinds = Counter(record.kind for record in records)
    for kind, share in answers.KINDS.items():
        assert kinds[kind] / COUNT == pytest.approx(share, abs=0.08)
    sources = Counter(record.pattern.split(".", 1)[0] for record in records)
    assert sources["web"] / COUNT == pytest.approx(answers.PAGES, abs=0.08)
    assert {"movie", "finance", "music", "sports", "open", "web", "prose"} == set(sources)


def test_what_is_copied_stands_in_a_passage(records: list[Record]) -> None:
    copied = 0
    for record in records:
        text = "\n".join(record.passages).lower()
        for part in record.support:
            assert part.lower() in text, record
            copied += record.kind == "answer"
    assert copied > 0.4 * COUNT * answers.KINDS["answer"]


def test_each_record_is_whole(records: list[Record]) -> None:
    words = {"unknown": UNKNOWN, "invalid_question": INVALID}
    for record in records:
        # No hole and no alternative is left.
        assert not re.search(r"[{}|\[\]]|\s\s", record.query), record.query
        assert datetime(2022, 1, 1, tzinfo=UTC) < record.query_time < datetime(2027, 1, 1, tzinfo=UTC)
        assert record.passages
        assert all(passage.strip() for passage in record.passages)
        assert sum(map(len, record.passages)) <= MAX_CHARS
        if record.kind == "answer":
            assert record.answer.strip()
            assert record.answer not in words.values()
        else:
            assert record.answer == words[record.kind]
        assert (record.question_type == "false_premise") == (record.kind == "invalid_question")


@pytest.mark.parametrize("reason", MISSING)
def test_every_reason_to_abstain_makes_records(engine: Engine, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """Of a look-up whose program is known executing it gives the answer, which no passage has."""
    monkeypatch.setattr("lab.trainer.synthesise.evidence.MISSING", {reason: 1.0})
    evidence = Evidence(engine)
    drawn = (evidence.record("unknown") for _ in range(60))
    records = [record for _, record in zip(range(4), filter(None, drawn), strict=False)]
    assert records
    for record in records:
        assert record.answer == UNKNOWN
        if reason == "in part":
            assert "\n" in record.program
        if reason == "out of date":
            assert "(Note: " in "\n".join(record.passages)
        if reason in ("other thing", "other facts") and record.pattern.split(":")[-1] not in ("count", "result"):
            statements = engine.graph.execute(record.program, record.domain, record.query_time)
            assert len(statements) > 1 or statements[0].text not in record.passages, record


def test_templates_settle_their_alternatives() -> None:
    phrasing = Phrasing()
    assert {phrasing.say("[a|b [c|d]] {x}", x="[e]") for _ in range(200)} == {"a [e]", "b c [e]", "b d [e]"}
    assert phrasing.say("{x}", x="a|b{") == "a|b{"


def test_names_are_not_mistyped() -> None:
    phrasing = Phrasing()
    for _ in range(500):
        assert "marlenstad tower" in phrasing.typed("where exactly is Marlenstad Tower standing").lower()
