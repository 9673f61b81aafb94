"""Time words become the days that their asker means, in the calendar of the domain."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proto.base import parse_query_time
from services.kg.domains import CATALOGUE
from services.kit.text import times
from services.kit.text.times import MAX_PHRASE_CHARS, UnknownTime, Window


def at(text: str) -> datetime:
    return parse_query_time(text)


def resolve_time(phrase: str, query_time: datetime, *, domain: str) -> Window:
    return times.resolve_time(phrase, query_time, CATALOGUE.domains[domain].calendar)


def resolve_span(first: str, second: str, query_time: datetime, *, domain: str) -> Window:
    return times.resolve_span(first, second, query_time, CATALOGUE.domains[domain].calendar)


WEDNESDAY = at("02/28/2024, 07:49:44 PT")
NIGHT = at("02/28/2024, 23:30:00 PT")
SUNDAY = at("02/25/2024, 10:00:00 PT")
HOLIDAY_MONDAY = at("02/19/2024, 10:00:00 PT")
NEW_YEAR = at("01/01/2024, 10:00:00 PT")
SECOND_OF_JANUARY = at("01/02/2024, 10:00:00 PT")


def days(window: Window) -> str:
    return f"{window.start or ''}/{window.end or ''}"


# By domain and moment: phrases with the days that they mean.
WINDOWS: dict[tuple[str, datetime], list[tuple[str, str]]] = {
    ("finance", WEDNESDAY): [
        ("today", "2024-02-28/2024-02-29"), ("Yesterday", "2024-02-27/2024-02-28"),
        ("the day before yesterday", "2024-02-26/2024-02-27"), ("this week", "2024-02-26/2024-02-28"),
        ("last week", "2024-02-19/2024-02-24"), ("past week", "2024-02-19/2024-02-24"),
        ("next week", "2024-03-04/2024-03-09"), ("current month", "2024-02-01/2024-02-28"),
        ("last month", "2024-01-01/2024-02-01"), ("over the past month", "2024-01-01/2024-02-01"),
        ("last quarter", "2023-10-01/2024-01-01"), ("this year", "2024-01-01/2024-02-28"),
        ("last year", "2023-01-01/2024-01-01"), ("past 3 days", "2024-02-25/2024-02-28"),
        ("last 5 trading days", "2024-02-21/2024-02-28"), ("past two weeks", "2024-02-14/2024-02-28"),
        ("last 12 months", "2023-02-28/2024-02-28"), ("past year", "2023-02-28/2024-02-28"),
        ("year to date", "2024-01-01/2024-02-28"), ("3 days ago", "2024-02-25/2024-02-26"),
        ("monday", "2024-02-26/2024-02-27"), ("on wed", "2024-02-21/2024-02-22"), ("thurs", "2024-02-22/2024-02-23"),
        ("last friday", "2024-02-23/2024-02-24"), ("last monday", "2024-02-19/2024-02-20"),
        ("last tues", "2024-02-20/2024-02-21"), ("recent monday", "2024-02-26/2024-02-27"),
        ("this past friday", "2024-02-23/2024-02-24"), ("this friday", "2024-02-23/2024-02-24"),
        ("next friday", "2024-03-01/2024-03-02"), ("tue of last week", "2024-02-20/2024-02-21"),
        ("last week on friday", "2024-02-23/2024-02-24"), ("first week of february", "2024-02-01/2024-02-08"),
        ("first week of january 2023", "2023-01-01/2023-01-08"), ("second week of december", "2023-12-08/2023-12-15"),
        ("week of feb 14 2024", "2024-02-12/2024-02-17"), ("q1 2024", "2024-01-01/2024-04-01"),
        ("2023q4", "2023-10-01/2024-01-01"), ("first quarter of 2024", "2024-01-01/2024-04-01"),
        ("1st qtr of 2024", "2024-01-01/2024-04-01"), ("q3", "2023-07-01/2023-10-01"),
        ("q4 of last year", "2023-10-01/2024-01-01"), ("h2 2022", "2022-07-01/2023-01-01"),
        ("last trading day", "2024-02-27/2024-02-28"), ("previous trading session", "2024-02-27/2024-02-28"),
        ("the last day the market was open", "2024-02-27/2024-02-28"), ("2024-02-13", "2024-02-13/2024-02-14"),
        ("2024-02", "2024-02-01/2024-03-01"), ("2023", "2023-01-01/2024-01-01"),
        ("monday to friday", "2024-02-19/2024-02-24"), ("this month so far", "2024-02-01/2024-02-28"),
        ("2024-w05", "2024-01-29/2024-02-03"),
        ("20240213", "2024-02-13/2024-02-14"), ("02/13/2024", "2024-02-13/2024-02-14"),
        ("13/02/2024", "2024-02-13/2024-02-14"), ("jan 5 2024", "2024-01-05/2024-01-06"),
        ("January 5th, 2024", "2024-01-05/2024-01-06"), ("5 january 2024", "2024-01-05/2024-01-06"),
        ("february 09", "2024-02-09/2024-02-10"), ("march 17", "2023-03-17/2023-03-18"),
        ("december", "2023-12-01/2024-01-01"), ("since 2020", "2020-01-01/2024-02-29"),
        ("before 2010", "/2010-01-01"), ("until 2010", "/2011-01-01"), ("after 2015", "2016-01-01/2024-02-29"),
        ("between 2000 and 2010", "2000-01-01/2011-01-01"), ("2000-2010", "2000-01-01/2011-01-01"),
        ("from january to march 2023", "2023-01-01/2023-04-01"), ("november to january", "2023-11-01/2024-02-01"),
        ("january to march", "2023-01-01/2023-04-01"), ("in 2 days", "2024-03-01/2024-03-02"),
        ("from 2024-01-02", "2024-01-02/2024-02-29"), ("2024-01-02 to 2024-01-05", "2024-01-02/2024-01-06"),
        ("february 1-7", "2024-02-01/2024-02-08"), ("2010s", "2010-01-01/2020-01-01"),
        ("the 90s", "1990-01-01/2000-01-01"), ("Tue, 13 Feb 2024 10:00:00", "2024-02-13/2024-02-14"),
    ],
    ("finance", NIGHT): [("today", "2024-02-29/2024-03-01"), ("this week", "2024-02-26/2024-02-29")],
    ("finance", SUNDAY): [
        ("this week", "2024-02-19/2024-02-24"), ("last week", "2024-02-19/2024-02-24"),
        ("next week", "2024-02-26/2024-03-02"), ("last friday", "2024-02-23/2024-02-24"),
        ("last sunday", "2024-02-18/2024-02-19"),
    ],
    ("finance", HOLIDAY_MONDAY): [
        ("this week", "2024-02-19/2024-02-20"), ("monday", "2024-02-12/2024-02-13"),
        ("last week", "2024-02-12/2024-02-17"),
    ],
    ("finance", NEW_YEAR): [
        ("this year", "2024-01-01/2024-01-02"), ("this month", "2024-01-01/2024-01-02"),
        ("yesterday", "2023-12-31/2024-01-01"), ("last month", "2023-12-01/2024-01-01"),
    ],
    ("finance", SECOND_OF_JANUARY): [
        ("last quarter", "2023-10-01/2024-01-01"), ("last week", "2023-12-25/2023-12-30"),
    ],
    # Sports keep the asker's day and whole weeks, and have seasons.
    ("sports", NIGHT): [
        ("today", "2024-02-28/2024-02-29"), ("this week", "2024-02-25/2024-03-03"),
        ("last week", "2024-02-18/2024-02-25"), ("this friday", "2024-03-01/2024-03-02"),
        ("last weekend", "2024-02-24/2024-02-26"), ("march 17", "2024-03-17/2024-03-18"),
        ("2022-23", "2022-07-01/2023-07-01"), ("last season", "2022-07-01/2023-07-01"),
        ("2022-12", "2022-12-01/2023-01-01"), ("this month", "2024-02-01/2024-03-01"),
        ("last 7 days", "2024-02-22/2024-02-29"), ("march 17 to april", "2024-03-17/2024-05-01"),
    ],
    ("movie", WEDNESDAY): [("2022-23", "2022-01-01/2024-01-01")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("domain", "query_time", "phrase", "expected"),
    [(*when, *window) for when, windows in WINDOWS.items() for window in windows],
)
def test_phrases_mean_days(domain: str, query_time: datetime, phrase: str, expected: str) -> None:
    assert days(resolve_time(phrase, query_time, domain=domain)) == expected


@pytest.mark.parametrize(
    ("phrase", "kind", "expected"),
    [
        ("latest", "latest", "/2024-02-29"), ("now", "latest", "/2024-02-29"), ("ipo", "first", "/2024-02-29"),
        ("yearly open", "first", "2024-01-01/2025-01-01"), ("last time", "previous_event", "/2024-02-29"),
        ("first trading day of 2024", "first", "2024-01-01/2025-01-01"),
        ("first day of trading in january", "first", "2024-01-01/2024-02-01"),
        ("last trading day of last month", "last", "2024-01-01/2024-02-01"),
        ("end of 2023", "last", "2023-01-01/2024-01-01"),
    ],
)  # fmt: skip
def test_some_phrases_mean_one_record_of_a_window(phrase: str, kind: str, expected: str) -> None:
    window = resolve_time(phrase, WEDNESDAY, domain="finance")
    assert (window.kind, days(window)) == (kind, expected)


def test_a_calendar_with_fixtures_has_a_next_game() -> None:
    window = resolve_time("next game", WEDNESDAY, domain="sports")
    assert (window.kind, days(window)) == ("next_event", "2024-02-28/")


@pytest.mark.parametrize("phrase", ["last season", "last trading day", "next game"])
def test_only_sports_have_seasons_and_fixtures_and_only_markets_trading_days(phrase: str) -> None:
    with pytest.raises(UnknownTime):
        resolve_time(phrase, WEDNESDAY, domain="movie")


def test_a_weekday_moves_on_and_other_days_move_back_but_only_on_a_trading_calendar() -> None:
    for phrase, snap in (("last monday", "next"), ("yesterday", "previous"), ("2024-02-19", "previous")):
        assert resolve_time(phrase, WEDNESDAY, domain="finance").snap == snap
        assert resolve_time(phrase, WEDNESDAY, domain="sports").snap == "none"


def test_pacific_time_is_shifted_by_the_zones_own_rules() -> None:
    # Between the two zones' switches to summer time on 2024-03-10 lie three hours, in which New York is four ahead.
    winter = resolve_time("now", at("2024-03-10T09:30:00Z"), domain="finance").now
    summer = resolve_time("now", at("2024-03-11T09:30:00Z"), domain="finance").now
    assert (f"{winter:%d %H:%M}", f"{summer:%d %H:%M}") == ("10 05:30", "11 05:30")
    assert f"{resolve_time('now', at('03/10/2024, 01:30:00 PT'), domain='finance').now:%H:%M}" == "05:30"


def test_labels_name_the_days() -> None:
    labels = {
        "last friday": "last Friday (2024-02-23)",
        "this week": "this week (2024-02-26 to 2024-02-27)",
        "2024-02-13": "2024-02-13",
        "before 2010": "before 2010 (until 2009-12-31)",
        "latest": "latest (at 2024-02-28 10:49 ET)",
        "last trading day": "last trading day (2024-02-27)",
    }
    assert {phrase: resolve_time(phrase, WEDNESDAY, domain="finance").label for phrase in labels} == labels


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("2024-01-01", "2024-01-07", "2024-01-01/2024-01-08"),
        ("last monday", "last friday", "2024-02-19/2024-02-24"),
        ("recent monday", "recent friday", "2024-02-23/2024-02-27"),
        ("2000", "2010", "2000-01-01/2011-01-01"),
        ("2024-01", "now", "2024-01-01/2024-02-29"),
        ("ipo", "2023", "/2024-01-01"),
    ],
)
def test_spans_include_both_ends_in_either_order(first: str, second: str, expected: str) -> None:
    assert days(resolve_span(first, second, WEDNESDAY, domain="finance")) == expected


@pytest.mark.parametrize(
    "phrase",
    [
        "", " ", "the", "the movie", "2024-02-30", "2024-13", "0000", "9999", "past 0 days", "past 99999 years", "a",
        "top 10",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_examples(phrase: str) -> None:
    with pytest.raises(UnknownTime) as refused:
        resolve_time(phrase, WEDNESDAY, domain="finance")
    assert refused.value.phrase.strip() == phrase.strip().removeprefix("the ")
    assert "last friday" in str(refused.value)


def test_a_long_phrase_is_refused_unread_and_echoed_in_part() -> None:
    with pytest.raises(UnknownTime) as refused:
        resolve_time("today " * 1_000, WEDNESDAY, domain="finance")
    assert len(refused.value.phrase) <= MAX_PHRASE_CHARS


@pytest.mark.parametrize("query_time", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_calendars_ends_are_refused(query_time: datetime) -> None:
    with pytest.raises(UnknownTime):
        resolve_time("past 3 years" if query_time.year == 1 else "next year", query_time, domain="finance")


def test_query_times() -> None:
    assert at("02/28/2024, 08:12:36 PT") == datetime(2024, 2, 28, 16, 12, 36, tzinfo=UTC)
    assert at("2024-02-28T16:12:36Z") == datetime(2024, 2, 28, 16, 12, 36, tzinfo=UTC)
    with pytest.raises(ValueError, match="ISO 8601"):
        at("last tuesday")


WORDS = st.from_regex(
    r"(last|this|next|past|previous|most recent|first|second|of|in|since|before|between|and|to|until|week|month|"
    r"quarter|"
    r"year|days?|trading|friday|wed|q1|2024|2023-02|january|5|12|-|/|2010s|ipo|open|ago|today|game|the)",
    fullmatch=True,
)


@given(
    st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=8).map(" ".join)),
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)),
    st.sampled_from(list(CATALOGUE.domains)),
)
def test_any_text_is_a_window_or_refused(text: str, query_time: datetime, domain: str) -> None:
    try:
        window = resolve_time(text, query_time, domain=domain)
    except UnknownTime:
        return
    assert window.start is None or window.end is None or window.start < window.end
    assert window.start is not None or window.end is not None
    assert isinstance(window.start or window.end, date)
    assert window.label
