"""Made-up questions with passages: the same for a seed, in the shares asked for, each answer true to its text."""

import re
from collections import Counter
from typing import get_args

import pytest

from lab.trainer.synthesise import answers, finance, movies, sports
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.record import INVALID, UNKNOWN, QuestionType, Record
from lab.trainer.synthesise.voice import Voice, dollars

COUNT = 3_500
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(answers.generate(COUNT, seed=1))


def of(records: list[Record], pattern: str, kind: str = "answer") -> list[Record]:
    found = [record for record in records if record.pattern == pattern and record.kind == kind]
    assert len(found) > 3, pattern
    return found


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def test_the_same_seed_makes_the_same_records_and_another_makes_others(records: list[Record]) -> None:
    assert list(answers.generate(200, seed=1)) == records[:200]
    others = {record.query for record in answers.generate(200, seed=2)}
    assert len(others & {record.query for record in records[:200]}) < 5


def test_no_question_comes_twice(records: list[Record]) -> None:
    assert len({record.query.lower() for record in records}) == COUNT


def test_kinds_domains_and_types_come_in_their_shares(records: list[Record]) -> None:
    kinds = Counter(record.kind for record in records)
    for kind, share in answers.KINDS.items():
        assert kinds[kind] / COUNT == pytest.approx(share, abs=0.03)
    domains = Counter(record.domain for record in records)
    assert domains["movie"] > domains["finance"] > domains["music"] > domains["sports"] > COUNT * 0.05
    # Web pages are of any domain, and told to be open.
    assert domains["open"] / COUNT == pytest.approx(0.33, abs=0.04)
    assert set(Counter(record.question_type for record in records)) == set(get_args(QuestionType))
    patterns = {f"{p.__module__.rsplit('.', 1)[-1]}.{p.__name__}" for _, ps in answers.DOMAINS for _, p in ps}
    assert {record.pattern for record in records} == patterns


def test_what_is_copied_stands_in_a_passage(records: list[Record]) -> None:
    for record in records:
        text = "\n".join(record.passages).lower()
        for said in record.support:
            assert said.lower() in text, record


def test_abstentions_and_refusals_are_said_in_their_own_words(records: list[Record]) -> None:
    words = {"unknown": UNKNOWN, "invalid_question": INVALID}
    for record in records:
        assert record.passages
        assert all(passage.strip() for passage in record.passages)
        assert sum(map(len, record.passages)) <= answers.MAX_CHARS
        if record.kind == "answer":
            assert record.answer.strip()
            assert record.answer not in words.values()
        else:
            assert record.answer == words[record.kind]
        assert (record.question_type == "false_premise") == (record.kind == "invalid_question")


def test_no_hole_and_no_alternative_is_left(records: list[Record]) -> None:
    for record in records:
        assert not re.search(r"[{}|\[\]]|\s\s", record.query), record.query


def test_prices_of_a_day_are_said_in_dollars_with_two_places(records: list[Record]) -> None:
    for record in of(records, "finance.price_on_day"):
        assert re.fullmatch(r"\$[\d,]+\.\d\d|\d+", record.answer), record
        said = numbers(record.answer)[0]
        assert any(abs(said - value) <= 0.0051 for value in numbers("\n".join(record.passages))), record


def test_a_day_without_a_record_has_no_price(records: list[Record]) -> None:
    lacking = [r for r in records if r.passages[0].startswith("There is no ") and r.domain == "finance"]
    assert lacking
    assert {record.kind for record in lacking} == {"unknown"}


def test_the_larger_one_wins_a_comparison() -> None:
    voice = Voice()
    voice.rng.seed(3)
    names = Names(voice)
    checked = 0
    for _ in range(400):
        record = finance.compare(voice, names)
        shown = [re.fullmatch(r"the (.+) of (.+) (?:is|in \S+ is) (-?[\d.]+?)\.?", text) for text in record.passages]
        low = re.search(r"\b(?:lower|smaller|cheaper)\b", record.query.lower()) is not None
        if record.kind != "answer" or record.answer in ("yes", "no") or not all(shown) or len(shown) != 2:
            continue
        values = {match.group(2).lower(): float(match.group(3)) for match in shown if match}
        if record.answer not in values:
            continue
        assert values[record.answer] == (min if low else max)(values.values()), record
        checked += 1
    assert checked > 30


def test_dividends_are_counted_and_found_by_rank(records: list[Record]) -> None:
    for record in of(records, "finance.dividends"):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", record.answer):
            days = sorted(re.findall(r"\b\d{8}\b|\d{4}-\d\d-\d\d", record.passages[0].replace("'", " ")))
            wanted = record.answer.replace("-", "")
            assert not days or wanted in (days[0].replace("-", ""), days[-1].replace("-", "")), record


def test_a_premise_is_refuted_by_what_is_shown(records: list[Record]) -> None:
    for record in of(records, "sports.no_match", "invalid_question"):
        assert re.search(r"no match|no game|no record|0 games", record.passages[0].lower()), record
    for record in of(records, "finance.dividends", "invalid_question"):
        assert re.search(r"none on file|, 0 entries|paid no dividends|: 0\.|is empty", record.passages[0]), record


def test_questions_about_what_is_not_shown_are_abstained_from() -> None:
    voice = Voice()
    voice.rng.seed(5)
    names = Names(voice)
    for _ in range(300):
        record = movies.attribute(voice, names)
        title_shown = any(
            title.lower() in record.query.lower()
            for passage in record.passages
            for title in re.findall(r"(?:of|film) \"?([^\"\n]+?)\"? is ", passage)
        )
        if record.kind == "answer":
            assert record.answer in "\n".join(record.passages).replace(",", "") or ", " in record.answer, record
        elif title_shown and len(record.passages) == 1 and record.passages[0].startswith("the "):
            asked = [k for k, (nouns, whole) in movies.ATTRIBUTES.items() if k.split(" ")[0] in record.query.lower()]
            stated = record.passages[0].replace("_", " ")
            zero = re.search(r" is (?:0|None|none|null|unknown|N/A|-|nan)\.?$", stated)
            assert zero or not any(stated.startswith(f"the {key} of") and key in record.query for key in asked), record


def test_totals_of_a_season_add_up() -> None:
    voice = Voice()
    voice.rng.seed(7)
    names = Names(voice)
    pattern = re.compile(r".+? has (\d+) games in .+?: (\d+) wins \((\d+) at home, (\d+) away\) and (\d+) losses")
    checked = 0
    for _ in range(200):
        for passage in sports.season(voice, names).passages:
            if match := pattern.match(passage):
                games, wins, home, away, losses = map(int, match.groups())
                assert (wins + losses, home + away) == (games, wins)
                checked += 1
    assert checked > 50


@pytest.mark.parametrize(("value", "said"), [(44.55, "$44.55"), (1197.19, "$1,197.19"), (0.005, "$0.01"), (9, "$9.00")])
def test_dollars(value: float, said: str) -> None:
    assert dollars(value) == said


def test_templates_settle_their_alternatives() -> None:
    voice = Voice()
    assert {voice.say("[a|b [c|d]] {x}", x="[e]") for _ in range(200)} == {"a [e]", "b c [e]", "b d [e]"}
    assert voice.say("{x}", x="a|b{") == "a|b{"


def test_names_are_not_mistyped() -> None:
    voice = Voice()
    for _ in range(2_000):
        assert "marlenstad tower" in voice.typed("where exactly is Marlenstad Tower standing").lower()
