"""The weekly chart of a day. Python, because it is the newest chart of the graph up to that day."""

from datetime import date, timedelta

from sqlalchemy import func, select

from services.kg.scope import Scope


def chart_week(scope: Scope) -> None:
    """Narrow a chart to the week that the time means, the newest by default."""
    window = scope.windows.get("date")
    if window is not None and window.granularity in ("month", "quarter", "year", "range"):
        if window.start is not None:
            scope.narrow(scope.columns["date"] >= window.start.isoformat())
        scope.narrow(scope.columns["date"] < (window.end or scope.today + timedelta(days=1)).isoformat())
        return
    last = scope.today if window is None or window.end is None else min(scope.today, window.end - timedelta(days=1))
    billboard = scope.tables["billboard"]
    newest = scope.scalar(select(func.max(billboard.c.date)).where(billboard.c.date <= last.isoformat()))
    scope.narrow(scope.columns["date"] == str(newest))
    if newest is not None and date.fromisoformat(str(newest)) < last - timedelta(days=13):
        scope.findings.status = "stale"
        scope.findings.notes.append(f"the charts known end on {newest}")
