"""The last lines of logs."""

from pathlib import Path

from services.cli.logs import LINE_BYTES, tail


def test_the_end_of_a_large_log_is_read_without_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "kg.log"
    with log.open("wb") as file:
        file.truncate(8 * 2**30)
        file.seek(0, 2)
        file.write(b"\nfirst\nsecond \xc3\xa9\nthird \xff\n")
    assert tail(log, 2) == ("second é", "third \N{REPLACEMENT CHARACTER}")
    log.write_text("one\ntwo\n")
    assert tail(log, 5) == ("one", "two")
    log.write_text("x" * 3 * LINE_BYTES + "\nlast\n")
    assert tail(log, 1) == ("last",)
    assert tail(tmp_path / "none.log", 3) == ()
