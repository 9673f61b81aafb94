"""A calendar is data; what it leaves out is the askers' own."""

import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kit.text.times import Calendar, UnknownTime, Window, resolve_span, resolve_time

# A Wednesday.
MOMENT = datetime(2024, 2, 28, 16, tzinfo=UTC)


def days(window: Window) -> str:
    return f"{window.start or ''}/{window.end or ''}"


def test_a_calendar_of_ones_own() -> None:
    calendar = Calendar.of(
        {
            "zone": "Europe/Vienna", "zone_label": "CET", "business_day": "auction day", "events": ["auction"],
            "first": ["opening sale"], "rewrites": {r"\bsale days?\b": "business day"}, "examples": ["last auction"],
        }
    )  # fmt: skip
    assert resolve_time("last sale day", MOMENT, calendar).label == "last auction day (2024-02-27)"
    assert resolve_time("next auction", MOMENT, calendar).kind == "next_event"
    assert resolve_time("opening sale", MOMENT, calendar).kind == "first"
    assert resolve_time("now", MOMENT, calendar).label == "now (at 2024-02-28 17:00 CET)"
    with pytest.raises(UnknownTime, match="last auction"):
        resolve_time("whenever", MOMENT, calendar)


@pytest.mark.parametrize(
    ("day", "phrase", "sundays", "mondays"),
    [
        ("2024-02-28", "this week", "2024-02-25/2024-03-03", "2024-02-26/2024-03-04"),
        ("2024-02-28", "last week", "2024-02-18/2024-02-25", "2024-02-19/2024-02-26"),
        # A Sunday begins a week, or ends one.
        ("2024-02-25", "this week", "2024-02-25/2024-03-03", "2024-02-19/2024-02-26"),
        ("2024-02-25", "sunday of last week", "2024-02-18/2024-02-19", "2024-02-18/2024-02-19"),
        ("2024-02-28", "sunday of last week", "2024-02-18/2024-02-19", "2024-02-25/2024-02-26"),
        ("2024-02-28", "week of 25 february 2024", "2024-02-25/2024-03-03", "2024-02-19/2024-02-26"),
        ("2024-02-28", "last weekend", "2024-02-24/2024-02-26", "2024-02-24/2024-02-26"),
        ("2024-02-25", "this weekend", "2024-02-24/2024-02-26", "2024-02-24/2024-02-26"),
    ],
)
def test_a_week_begins_on_the_day_of_the_calendar(day: str, phrase: str, sundays: str, mondays: str) -> None:
    noon = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    for begins, expected in (("sunday", sundays), ("monday", mondays)):
        assert days(resolve_time(phrase, noon, Calendar.of({"zone": "UTC", "week_begins": begins}))) == expected


@pytest.mark.parametrize(
    "content", [{"zone": "Mars/Olympus"}, {"season_month": 13}, {"rewrites": {"(": ""}}, {"colour": "blue"}]
)
def test_what_is_no_calendar_is_refused(content: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(content))):
        Calendar.of(content)


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("november to february 2023", "2022-11-01/2023-03-01"), ("february to november 2023", "2023-02-01/2023-12-01"),
        ("june 2022 to august", "2022-06-01/2022-09-01"), ("december 2022 to march", "2022-12-01/2023-04-01"),
        ("2022-06-05 to 12 august", "2022-06-05/2022-08-13"), ("q3 2022 to q1", "2022-07-01/2023-04-01"),
        ("from 5 may to 10 june", "2023-05-05/2023-06-11"), ("may to march", "2022-05-01/2023-04-01"),
        ("20 december to 5 january 2020", "2019-12-20/2020-01-06"), ("30th to 1st", "2024-01-30/2024-02-02"),
        ("1/5 to 31/5", "2023-05-01/2023-06-01"),
        ("monday to friday", "2024-02-19/2024-02-24"), ("monday to today", "2024-02-26/2024-02-29"),
        ("2021-2019", "2019-01-01/2022-01-01"), ("between now and 2020", "2020-01-01/2024-02-29"),
        ("1/5/2024 to 31/5/2024", "2024-05-01/2024-06-01"), ("01.06.2024", "2024-06-01/2024-06-02"),
        ("6/1/2024", "2024-06-01/2024-06-02"), ("may '22", "2022-05-01/2022-06-01"),
        ("'may 22'", "2023-05-22/2023-05-23"),
        ("the 1990's", "1990-01-01/2000-01-01"), ("2020's q1", "2020-01-01/2020-04-01"),
        ("last 7 days", "2024-02-22/2024-02-29"), ("past year", "2023-03-01/2024-02-29"),
        ("so far this year", "2024-01-01/2024-02-29"), ("february so far", "2024-02-01/2024-02-29"),
        ("this month to date", "2024-02-01/2024-02-29"), ("ytd", "2024-01-01/2024-02-29"),
        ("in four weeks", "2024-03-27/2024-03-28"), ("in the last four weeks", "2024-02-01/2024-02-29"),
        ("first half of 2023", "2023-01-01/2023-07-01"), ("second half of last quarter", "2023-11-16/2024-01-01"),
        ("h2 of the 1990s", "1995-01-01/2000-01-01"), ("first half of january", "2024-01-01/2024-01-16"),
        ("2022-w05", "2022-01-31/2022-02-07"),
    ],
)  # fmt: skip
def test_phrases_mean_days(phrase: str, expected: str) -> None:
    assert days(resolve_time(phrase, MOMENT, Calendar())) == expected


@pytest.mark.parametrize(
    "phrase",
    [
        "december 28 to 3", "may 28-3", "today to monday", "may 0", "0 may 2023", "over a year ago", "in over a year",
        "last half year", "first half of last week", "so far next year", "2020 to date",
    ],
)  # fmt: skip
def test_what_has_no_one_reading_is_refused(phrase: str) -> None:
    with pytest.raises(UnknownTime):
        resolve_time(phrase, MOMENT, Calendar())


@given(st.dates(date(1990, 1, 1), date(2035, 1, 1)), st.integers(0, 364), st.booleans())
def test_a_day_without_a_year_is_the_last_before_the_end_of_its_span(first: date, length: int, nearest: bool) -> None:
    last, calendar = first + timedelta(days=length), Calendar(nearest=nearest)
    expected = f"{first}/{last + timedelta(days=1)}"
    assert days(resolve_time(f"{first:%d %B} to {last:%B %d, %Y}", MOMENT, calendar)) == expected
    assert days(resolve_span(f"{first:%B %d}", f"{last:%d %b %Y}", MOMENT, calendar)) == expected


def test_a_nested_phrase_is_read_in_no_time() -> None:
    start = time.process_time()
    with pytest.raises(UnknownTime):
        resolve_time("from 5 - " * 8 + "5", MOMENT, Calendar())
    assert time.process_time() - start < 0.3
