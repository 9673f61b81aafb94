"""A calendar is data; what it leaves out is the askers' own."""

from datetime import UTC, datetime

import pytest

from services.kit.text.times import Calendar, UnknownTime, resolve_time

MOMENT = datetime(2024, 2, 28, 16, tzinfo=UTC)


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
    "content", [{"zone": "Mars/Olympus"}, {"season_month": 13}, {"rewrites": {"(": ""}}, {"colour": "blue"}]
)
def test_what_is_no_calendar_is_refused(content: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(content))):
        Calendar.of(content)


def test_a_span_over_the_turn_of_a_year_begins_in_the_year_before() -> None:
    calendar = Calendar()
    window = resolve_time("november to february 2023", MOMENT, calendar)
    assert (str(window.start), str(window.end)) == ("2022-11-01", "2023-03-01")
    within = resolve_time("february to november 2023", MOMENT, calendar)
    assert (str(within.start), str(within.end)) == ("2023-02-01", "2023-12-01")
