"""Made-up questions with passages: the same for a seed, in their shares, each answer true to its text."""

import re
from collections import Counter
from datetime import UTC, datetime

import pytest

from lab.trainer.synthesise import answers
from lab.trainer.synthesise.engine import Engine
from lab.trainer.synthesise.evidence import MAX_CHARS, MISSING, Evidence
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.record import INVALID, UNKNOWN, Record

# A world and hundreds of programs take seconds of one core, and minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)
COUNT = 300
SEED = 1


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(answers.generate(COUNT, SEED))


@pytest.fixture
def evidence(engine: Engine) -> Evidence:
    return Evidence(engine)


def test_the_same_seed_makes_the_same_records(records: list[Record]) -> None:
    assert list(answers.generate(25, SEED)) == records[:25]


def test_no_question_comes_twice(records: list[Record]) -> None:
    assert len({record.query.lower() for record in records}) == COUNT


def test_kinds_and_sources_come_in_their_shares(records: list[Record]) -> None:
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


def test_abstentions_and_refusals_have_their_own_words(records: list[Record]) -> None:
    words = {"unknown": UNKNOWN, "invalid_question": INVALID}
    for record in records:
        assert record.passages
        assert all(passage.strip() for passage in record.passages)
        assert sum(map(len, record.passages)) <= MAX_CHARS
        if record.kind == "answer":
            assert record.answer.strip()
            assert record.answer not in words.values()
        else:
            assert record.answer == words[record.kind]
        assert (record.question_type == "false_premise") == (record.kind == "invalid_question")


def test_no_hole_and_no_alternative_is_left(records: list[Record]) -> None:
    for record in records:
        assert not re.search(r"[{}|\[\]]|\s\s", record.query), record.query


def test_what_cannot_be_answered_is_not_answered_by_its_passages(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a look-up whose program is known: executing it gives the answer, which no passage has."""
    monkeypatch.setattr("lab.trainer.synthesise.evidence.MISSING", {"other thing": 1.0, "other facts": 1.0})
    checked = 0
    for _ in range(40):
        record = evidence.record("unknown")
        if record is None or "\n" in record.program or record.pattern.split(":")[-1] in ("count", "result"):
            continue
        statements = evidence.engine.graph.execute(record.program, record.domain, record.query_time)
        text = statements[0].text
        assert text not in record.passages, record
        checked += 1
    assert checked > 12


def test_programs_in_part_have_several_statements_and_late_replies_a_note(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reason in ("in part", "out of date"):
        monkeypatch.setattr("lab.trainer.synthesise.evidence.MISSING", {reason: 1.0})
        records = [record for _ in range(40) if (record := evidence.record("unknown")) is not None]
        assert records
        for record in records:
            assert "\n" in record.program if reason == "in part" else "(Note: " in "\n".join(record.passages)


def test_every_reason_to_abstain_makes_records(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in MISSING:
        monkeypatch.setattr("lab.trainer.synthesise.evidence.MISSING", {reason: 1.0})
        found = next((record for _ in range(60) if (record := evidence.record("unknown")) is not None), None)
        assert found is not None, reason
        assert found.answer == UNKNOWN


def test_templates_settle_their_alternatives() -> None:
    phrasing = Phrasing()
    assert {phrasing.say("[a|b [c|d]] {x}", x="[e]") for _ in range(200)} == {"a [e]", "b c [e]", "b d [e]"}
    assert phrasing.say("{x}", x="a|b{") == "a|b{"


def test_names_are_not_mistyped() -> None:
    phrasing = Phrasing()
    for _ in range(2_000):
        assert "marlenstad tower" in phrasing.typed("where exactly is Marlenstad Tower standing").lower()


def test_questions_are_asked_when_the_world_knows_of_it(records: list[Record]) -> None:
    for record in records:
        assert datetime(2022, 1, 1, tzinfo=UTC) < record.query_time < datetime(2027, 1, 1, tzinfo=UTC)
