"""The keys of a drafted domain: each stands once in its function, whatever the headers of the files are."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.draft import draft
from lab.draft.tables import read_tables
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.load import load
from services.kg.store.engine import open_store
from tests.unit.kg.library import write

PORTS = [["port_id", "port_name", "country"], ["P1", "Alpha Bay", "NO"], ["P2", "Beta Bay", "DE"], ["P3", "Cape", "NO"]]
TEAMS = [["team_id", "team_name"], ["T1", "Reds United"], ["T2", "Blues City"], ["T3", "Greens Town"]]


def keys_of(tmp_path: Path, function: str, **files: list[list[str]]) -> dict[str, Any]:
    """The keys of a function of a domain that was drafted from these files, read as services do, and filled."""
    paths = [write(tmp_path, f"{name}.csv", rows) for name, rows in files.items()]
    draft("own", paths, tmp_path / "domains")
    catalogue = read_catalogue(CATALOGUE, tmp_path / "domains")
    engine = open_store(f"sqlite:///{tmp_path}/kg.sqlite", read_only=False)
    load(tmp_path, engine, catalogue=catalogue)
    engine.dispose()
    text = (tmp_path / "domains" / "own" / "domain.yaml").read_text(encoding="utf-8")
    keys: dict[str, Any] = yaml.safe_load(text)["functions"][function]["keys"]
    return keys


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        (("ship", "cargo", "cargo_t"), ["ship", "cargo", "cargo_t"]),
        (("ship", "cargo_t", "cargo"), ["ship", "cargo_t", "cargo"]),
        (("ship", "height_m", "height_ft"), ["ship", "height", "height_ft"]),
        (("ship", "ship_t", "ship_kg"), ["ship", "ship_t", "ship_kg"]),
    ],
)
def test_a_unit_stays_in_a_key_whose_name_another_has(header: tuple[str, ...], keys: list[str], tmp_path: Path) -> None:
    names = {"ship": ["Maren Holt", "Solveig", "Ada"], "cargo": ["salt", "cod", "salt"]}
    cells = [names.get(one, ["10", "20", "40"]) for one in header]
    found = keys_of(tmp_path, "get_ship", ships=[list(header), *map(list, zip(*cells, strict=True))])
    assert [key for key in found if key != "ship_id"] == keys
    assert {found[key].get("unit", "") for key in keys if key.endswith(("_t", "_kg", "_ft"))} <= {"t", "kg", "feet"}


def calls(*header: str, **cells: list[str]) -> list[list[str]]:
    own = {"call_no": ["C1", "C2", "C3", "C4"], "port_id": ["P1", "P2", "P3", "P1"], **cells}
    return [list(header), *map(list, zip(*(own[one] for one in header), strict=True))]


def test_the_name_of_what_a_key_joins_is_the_same_key(tmp_path: Path) -> None:
    rows = calls("call_no", "port_id", "port", port=["Alpha Bay", "Beta Bay", "Cape", "Alpha Bay"])
    keys = keys_of(tmp_path, "get_call", ports=PORTS, calls=rows)
    assert keys["port"]["kind"] == "port"
    assert "port_id" not in keys


def test_a_column_with_the_name_of_what_is_joined_stays_beside_it(tmp_path: Path) -> None:
    rows = calls("call_no", "port_id", "port", port=["west", "east", "west", "west"])
    keys = keys_of(tmp_path, "get_call", ports=PORTS, calls=rows)
    assert keys["port_id"]["kind"] == "port"
    assert keys["port"] == {}


def test_a_unit_stays_where_a_join_has_the_name(tmp_path: Path) -> None:
    rows = calls("call_no", "port_id", "port_t", port_t=["3.5", "4.5", "4.6", "3"])
    assert {"port", "port_t"} <= keys_of(tmp_path, "get_call", ports=PORTS, calls=rows).keys()


def test_a_unit_stays_where_an_event_has_the_name(tmp_path: Path) -> None:
    matches = [["home_team", "away_team", "match_min"], ["T1", "T2", "90"], ["T2", "T3", "91"], ["T1", "T3", "92"]]
    assert {"match", "match_min"} <= keys_of(tmp_path, "get_match", teams=TEAMS, matches=matches).keys()


def test_numbers_of_persons_are_the_persons(tmp_path: Path) -> None:
    members = [["no", "member"], ["11", "Ann Lee"], ["12", "Bo Reed"], ["13", "Cy Page"], ["14", "Di Vellum"]]
    kit = [["item", "keeper_no", "checked_by", "rope_no"], ["Winch", "13", "11", "12"], ["Drone", "11", "12", "11"]]
    keys = keys_of(tmp_path, "get_kit", members=members, kit=[*kit, ["Raft", "13", "12", "14"]])
    assert [key for key in keys if keys[key] and keys[key].get("kind")] == ["item", "keeper", "checked_by"]
    assert "rope_no" in keys


def test_joins_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    berths = [["berth_id", "berth_name"], ["B1", "Old Quay"], ["B2", "Mill Wall"], ["B3", "Ferry Ramp"]]
    rows = calls(
        *("call_no", "port_id", "berth_id", "port"),
        berth_id=["B1", "B2", "B3", "B1"],
        port=["Alpha Bay", "Beta Bay", "Cape", "Alpha Bay"],
    )
    keys = keys_of(tmp_path, "get_call", ports=PORTS, berths=berths, calls=rows)
    assert [name for name, key in keys.items() if key.get("kind") in ("port", "berth")] == ["port", "berth"]
    paths = sorted(tmp_path.glob("*.csv"))
    (table,) = (one for one in read_tables(paths) if one.name == "call")
    assert [join.role for join in table.joins] == ["port", "berth"]


@pytest.mark.parametrize(
    ("header", "is_joined"),
    [(("perf", "takings"), True), (("receipt_no", "perf", "takings"), True), (("shift", "takings"), False)],
)
def test_a_table_that_tells_more_of_rows_joins_them_by_its_key(
    header: tuple[str, ...], is_joined: bool, tmp_path: Path
) -> None:
    performances = [["perf_no", "hall"], ["101", "Gate"], ["102", "Mill"], ["103", "Gate"], ["104", "Quay"]]
    own = {"receipt_no": ["R-1", "R-2", "R-3"], "takings": ["90", "85", "120"]}
    cells = [own.get(one, ["101", "102", "104"]) for one in header]
    takings = [list(header), *map(list, zip(*cells, strict=True))]
    keys = keys_of(tmp_path, "get_taking", performances=performances, takings=takings)
    assert ("kind" in keys.get("performance", {})) == is_joined


def test_vehicles_are_called_by_their_codes_and_not_by_their_plates(tmp_path: Path) -> None:
    vans = [["fleet_no", "reg", "make"], ["V01", "YK12 HNB", "Ford"], ["V02", "FD09 AVU", "Fiat"]]
    rows = [*vans, *([f"V{number}", f"NL{number} VED", "Ford"] for number in range(10, 30))]
    trips = [["trip_no", "fleet_no"], *([f"T{number}", f"V{number}"] for number in range(10, 30))]
    keys = keys_of(tmp_path, "get_van", vans=rows, trips=trips)
    assert keys["fleet_no"]["kind"] == "van"
    assert keys["reg"] == {}
    kind = yaml.safe_load((tmp_path / "domains" / "own" / "domain.yaml").read_text("utf-8"))["kinds"]["van"]
    assert (kind["name"], "reg" in kind["also"]) == ("fleet_no", True)
