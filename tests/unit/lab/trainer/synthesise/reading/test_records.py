"""Records about prose: each answer stands in what is shown, nothing else holds it, whole briefs on one side."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.trainer import pairs
from lab.trainer.errors import BadDataset
from lab.trainer.pairs import Pair
from lab.trainer.synthesise import answers
from lab.trainer.synthesise.reading import filters, records
from lab.trainer.synthesise.reading.articles import SAMPLE, article, cut, swapped, telling, way
from lab.trainer.synthesise.reading.briefs import PARTS
from lab.trainer.synthesise.record import Record
from services.gateway.normalize import UNKNOWN

COUNT = 500
BRIEFS = 200
TRADES = ("mill", "ferry", "school", "orchard", "theatre", "quarry", "library", "harbour")


def prose() -> list[Pair]:
    """Of each brief two questions with an answer, one on what is not told, and one over a passage that lost it."""
    lines = []
    for number in range(BRIEFS):
        name, trade = f"Brenlow{'abcdefghijklmnopqrst'[number % 20]}{number}", TRADES[number % len(TRADES)]
        first = f"{name} is a {trade} that was opened by Ilva Tornmay{number} after a long dispute. "
        rest = (
            f"It belongs to the town and is open on most days. Its {trade} keeper is paid {number + 7_000} crowns. "
            + "Visitors are asked to wipe their boots. " * (number % 13)
        ).strip()
        about = {"kind": "news", "title": f"{name} at a glance"}
        # Each the first passage of an article.
        identifier = f"7-{number * PARTS}-"
        whole = first + rest
        opened, paid = f"Who opened the {trade} {name}?", f"How much is the keeper of {name} paid?"
        for end, passage, question, answer in (
            ("q0", whole, opened, f"Ilva Tornmay{number}"),
            ("q1", whole, paid, f"{number + 7_000} crowns"),
            ("open0", whole, f"When did the {trade} {name} burn down?", ""),
            ("cut0", rest, opened, ""),
        ):
            start = passage.index(answer) if answer else -1
            lines.append(
                Pair(id=identifier + end, passage=passage, question=question, answer=answer, start=start, **about)
            )
    return lines


PROSE = prose()
PASSAGES = {(article(pair), pair.passage) for pair in PROSE}
BY_QUESTION: dict[str, list[Pair]] = defaultdict(list)
for _pair in PROSE:
    BY_QUESTION[_pair.question.lower().removesuffix("?")].append(_pair)


@pytest.fixture(scope="module")
def drawn() -> list[Record]:
    return records.generate(PROSE, COUNT, seed=1)


def own(record: Record) -> list[int]:
    """Places of passages of the record's own brief."""
    group = record.group.removeprefix("prose:")
    return [place for place, passage in enumerate(record.passages) if (group, passage) in PASSAGES]


def line(record: Record) -> list[Pair]:
    """What the record was made of."""
    return BY_QUESTION[record.query.lower().removesuffix("?")]


def test_a_seed_makes_the_same_records_and_another_makes_others() -> None:
    first, again, other = (records.generate(PROSE, 30, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_more_than_half_is_answered_from_its_own_passage_alone(drawn: list[Record]) -> None:
    answered = [record for record in drawn if record.kind == "answer"]
    assert len(drawn) == COUNT
    # No question comes twice in a way.
    assert len({(record.pattern, record.query.lower().removesuffix("?")) for record in drawn}) == COUNT
    assert len(answered) / COUNT == pytest.approx(records.ANSWERED, abs=0.01)
    for record in answered:
        assert [pair.answer for pair in line(record) if pair.answer] == [record.answer]
        assert [record.answer in passage for passage in record.passages].count(True) == 1
        assert len(own(record)) == 1


def test_what_is_not_told_is_not_answered(drawn: list[Record]) -> None:
    silent = [record for record in drawn if record.kind == "unknown"]
    ways = Counter(record.pattern for record in silent)
    assert set(ways) == {"reading.open", "reading.cut", "reading.lost"}
    assert ways["reading.lost"] == round(records.NOT_FOUND * (len(drawn) - len(silent)))
    for record in silent:
        assert record.answer == UNKNOWN
        gold = [pair.answer for pair in line(record) if pair.answer]
        assert not [passage for passage in record.passages for answer in gold if answer in passage]
        assert len(own(record)) == (0 if record.pattern == "reading.lost" else 1)


def test_the_own_passage_is_mostly_first_among_near_and_strange_ones(drawn: list[Record]) -> None:
    among = [own(record)[0] for record in drawn if len(record.passages) > 1 and own(record)]
    assert 0.5 < among.count(0) / len(among) < 0.75
    assert len(set(among)) > 3
    sizes = Counter(len(record.passages) for record in drawn)
    assert set(sizes) <= set(range(1, records.AROUND[1] + 2))
    assert len(sizes) >= 6
    near = strange = 0
    for record in drawn:
        trade = next((trade for trade in TRADES if trade in record.query.lower()), None)
        others = [passage for place, passage in enumerate(record.passages) if trade and place not in own(record)]
        near += sum(f" {trade}" in passage for passage in others)
        strange += sum(f" {trade}" not in passage for passage in others)
    # One of eight shares its trade by chance.
    assert 0.35 < near / (near + strange) < 0.85


def test_the_last_passage_is_shortened_to_fit_and_the_own_one_never(drawn: list[Record]) -> None:
    totals = [sum(map(len, record.passages)) + sum(map(len, record.titles)) for record in drawn]
    assert min(totals) < 600
    assert 2_500 < max(totals) <= records.CHARS[1]
    whole = {passage for _, passage in PASSAGES}
    short = [record for record in drawn if record.passages[-1] not in whole]
    assert len(short) > 25
    for record in short:
        assert any(passage.startswith(record.passages[-1]) for passage in whole)
    assert all(passage in whole for record in drawn for passage in record.passages[:-1])


def test_half_of_them_know_their_passages_titles(drawn: list[Record]) -> None:
    titled = [record for record in drawn if record.titles]
    assert len(titled) / COUNT == pytest.approx(records.TITLED, abs=0.06)
    title = {pair.passage: pair.title for pair in PROSE}
    for record in titled:
        titles = zip(record.passages, record.titles, strict=True)
        assert all(title.get(passage, named) == named for passage, named in titles)


def test_questions_are_typed_as_people_do_and_keep_their_names(drawn: list[Record]) -> None:
    as_written = [record for record in drawn if any(pair.question == record.query for pair in PROSE)]
    assert 1 - len(as_written) / COUNT == pytest.approx(records.TYPED, abs=0.06)
    assert sum(not record.query.endswith("?") for record in drawn) > 0.15 * COUNT
    small = [record for record in drawn if record.query == record.query.lower()]
    assert 0 < len(small) < 0.1 * COUNT
    for record in drawn:
        assert record in small or "Brenlow" in record.query


def test_a_name_in_front_keeps_its_capital() -> None:
    pair = Pair(
        id="7-0-q0", passage="Brenlow is run by Ilva.", question="Brenlow is run by whom?", answer="Ilva", start=18
    )
    twins = [pair.model_copy(update={"id": f"7-{n * PARTS}-open0", "answer": "", "start": -1}) for n in range(3)]
    typed = {record.query for seed in range(25) for record in records.generate([pair, *twins], 3, seed)}
    assert "Brenlow is run by whom" in typed
    assert "brenlow is run by whom?" in typed
    assert typed <= {"Brenlow is run by whom" + end for end in ("", "?")} | {
        "brenlow is run by whom" + end for end in ("", "?")
    }


def of_one_article() -> list[Pair]:
    """Of each article three passages, and over each a question, one that it leaves open, and one of which it is cut."""
    lines = []
    for number in range(60):
        name = f"Brenlow{number}"
        facts = [("opened", f"Ilva{number}"), ("painted", f"Oda{number}"), ("sold", f"Karl{number}")]
        passages = [f"{name} was {verb} by {person} at last." for verb, person in facts]
        for part, ((verb, person), passage) in enumerate(zip(facts, passages, strict=True)):
            about: dict[str, Any] = {"kind": "news", "title": name}
            place = f"7-{number * PARTS + part}"
            asked = f"Who {verb} {name}?"
            start = passage.index(person)
            lines.append(Pair(id=f"{place}-q0", passage=passage, question=asked, answer=person, start=start, **about))
            next_verb = facts[(part + 1) % PARTS][0]
            lines.append(Pair(id=f"{place}-open0", passage=passage, question=f"Who {next_verb} {name}?", **about))
            lines.append(Pair(id=f"{place}-cut0", passage=f"{name} is old.", question=asked, **about))
    return lines


def test_other_passages_of_the_article_stand_by_unless_they_may_answer() -> None:
    lines = of_one_article()
    made = records.generate(lines, 180, seed=1)
    assert {record.pattern for record in made} >= {f"reading.{way}" for way in ("q", "open", "cut", "lost")}
    beside: Counter[str] = Counter()
    for record in made:
        asked = record.query.lower().removesuffix("?")
        gold = {pair.answer for pair in lines if pair.answer and pair.question.lower().removesuffix("?") == asked}
        held = [passage for passage in record.passages if any(answer in passage for answer in gold)]
        assert len(held) == (1 if record.kind == "answer" else 0)
        same = {pair.passage for pair in lines if record.group == f"prose:{article(pair)}"}
        beside[record.pattern] += len(same & set(record.passages)) > (record.pattern != "reading.lost")
    assert beside["reading.open"] == 0
    assert min(beside["reading.q"], beside["reading.lost"]) > 10


def test_what_the_other_passages_of_an_article_do_not_answer() -> None:
    lines = of_one_article()
    passages = [pair for pair in lines if way(pair) == "q"]
    asked = next(pair for pair in lines if pair.id == "7-3-q0")
    assert [pair.id for pair in telling(asked, passages)] == ["7-4-q0", "7-5-q0"]
    cut = next(pair for pair in lines if pair.id == "7-3-cut0")
    assert [pair.id for pair in telling(cut, passages, "Oda1")] == ["7-5-q0"]
    assert not telling(next(pair for pair in lines if pair.id == "7-3-open0"), passages)


def test_twins_of_an_answered_line_have_no_answer() -> None:
    line = Pair(
        id="7-0-q2",
        title="A mill",
        passage="Brenlow is a mill. Ilva opened it in 1911. It is green.",
        question="Who opened Brenlow in 1911?",
        answer="Ilva",
        start=19,
    )
    lost, other = cut(line), swapped(line, ("4", "Kalbro"))
    assert lost is not None
    assert other is not None
    assert (lost.id, lost.question, lost.passage) == ("7-0-cut2", line.question, "Brenlow is a mill. It is green.")
    assert (other.id, other.question, other.passage) == ("7-0-swap2", "Who opened Kalbro in 1911?", line.passage)
    assert all((twin.answer, twin.start) == ("", -1) for twin in (lost, other))
    assert cut(line.model_copy(update={"passage": line.passage + " Ilva was proud."})) is None
    assert swapped(line.model_copy(update={"question": "Who opened it?"}), ("4", "Kalbro")) is None


def test_a_question_without_a_name_stands_among_what_cannot_answer_it() -> None:
    nameless = [
        pair.model_copy(update={"question": re.sub(r" (?:of )?Brenlow\w+", f" {word}", pair.question)})
        for word, pair in zip(("alpha", "beta", "gamma", "delta") * 100, PROSE, strict=False)
    ]
    assert not filters.names(nameless[0].question)
    made = records.generate(nameless, 20, seed=0)
    assert made
    for record in made:
        trade = next((trade for trade in TRADES if trade in record.query.lower()), None)
        others = [passage for place, passage in enumerate(record.passages) if place not in own(record)]
        assert not [passage for passage in others if trade and f" {trade}" in passage]
        # Without its passage nobody could say which of them was meant.
        assert record.pattern != "reading.lost"


def test_the_shipped_sample_is_kept_back() -> None:
    sample = pairs.read([Path(str(SAMPLE))])
    with pytest.raises(BadDataset, match="shipped sample"):
        records.generate(sample, 100, seed=0)
    made = records.generate([*sample, *PROSE], 60, seed=0)
    assert all(record.group.startswith("prose:7-") for record in made)
    shown = {passage for record in made for passage in record.passages}
    assert not shown & {pair.passage for pair in sample}


def test_a_short_file_gives_what_it_has_in_the_same_shares() -> None:
    made = records.generate(PROSE[:40], COUNT, seed=0)
    assert 20 < len(made) < 40
    assert sum(record.kind == "answer" for record in made) / len(made) == pytest.approx(records.ANSWERED, abs=0.04)


def test_prose_stands_at_random_places_among_made_up_records(
    drawn: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = [replace(record, group="") for record in drawn[:40]]
    monkeypatch.setattr(answers, "generate", lambda count, seed: iter({3: made_up}[seed][:count]))
    about_prose = records.generate(PROSE, 60, seed=3)
    mixed = list(records.mingled(about_prose, 100, seed=3))
    places = [place for place, record in enumerate(mixed) if record.group]
    assert [mixed[place] for place in places] == about_prose
    assert places != list(range(60))
    assert [record for record in mixed if not record.group] == made_up
