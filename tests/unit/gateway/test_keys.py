"""API keys: who gets in, how often, and what is never written down."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from proto.collections import Filter
from services.gateway.access import NOBODY, OWNER, Scope, current_scope
from services.gateway.keys import LOOK_S, Key, KeyRing, digest, main, parse, rate
from services.gateway.shared import SharedStore
from services.kit.errors import Forbidden, RateLimited, Unauthorized
from tests.keys import bearer, write_keys
from tests.unit.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
def time() -> Clock:
    return Clock()


@pytest.fixture
def window(time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", time)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", ("alice", "bob"), bob=6)


async def test_without_any_key_all_may_ask() -> None:
    async with KeyRing()("POST", "/answer", {}) as name:
        assert (name, current_scope.get()) == ("", OWNER)
    assert current_scope.get() == NOBODY


async def test_each_key_has_a_name_and_others_are_refused(file: Path, time: Clock) -> None:
    ring = KeyRing(key="plain", file=file, clock=time)
    assert (await ring.identify({"authorization": "Bearer plain"})).name == "default"
    assert (await ring.identify(bearer("alice"))).name == "alice"
    assert (await ring.identify({"authorization": "bearer  cm_bob "})).name == "bob"
    wrong = ("Bearer ", "Basic cm_alice", f"Bearer {digest('cm_alice').hex()}")
    for headers in ({}, bearer("mallory"), bearer("alic"), *({"authorization": value} for value in wrong)):
        with pytest.raises(Unauthorized) as refused:
            await ring.identify(headers)
        assert refused.value.headers == {"www-authenticate": "Bearer"}
        assert "cm_" not in str(refused.value)


async def test_keys_are_rotated_without_a_restart(file: Path, time: Clock) -> None:
    ring = KeyRing(file=file, clock=time)
    assert (await ring.identify(bearer("alice"))).name == "alice"
    write_keys(file, ("alice-2",))
    time.now += LOOK_S
    assert (await ring.identify(bearer("alice-2"))).name == "alice-2"
    with pytest.raises(Unauthorized):
        await ring.identify(bearer("alice"))


@pytest.mark.parametrize(
    "harm",
    [Path.unlink, lambda file: file.write_text("alice cm_alice\n"), lambda file: file.write_bytes(b"\xff\xfe\x00")],
    ids=["gone", "garbage", "binary"],
)
async def test_a_file_that_cannot_be_read_lets_nobody_in(
    file: Path, time: Clock, harm: Callable[[Path], object]
) -> None:
    ring = KeyRing(file=file, clock=time)
    assert (await ring.identify(bearer("alice"))).name == "alice"
    harm(file)
    time.now += LOOK_S
    with pytest.raises(Unauthorized):
        await ring.identify(bearer("alice"))
    write_keys(file, ("alice",))
    time.now += LOOK_S
    assert (await ring.identify(bearer("alice"))).name == "alice"


@pytest.mark.usefixtures("window")
async def test_a_key_is_held_to_its_own_rate(file: Path, time: Clock) -> None:
    ring = KeyRing(file=file, per_minute=60, clock=time)
    assert (await ring.identify(bearer("bob"))).name == "bob"
    with pytest.raises(RateLimited) as refused:
        await ring.identify(bearer("bob"))
    assert refused.value.headers == {"retry-after": "10"}
    for _ in range(10):
        assert (await ring.identify(bearer("alice"))).name == "alice"
    with pytest.raises(RateLimited):
        await ring.identify(bearer("alice"))
    time.now += 10.1
    assert (await ring.identify(bearer("bob"))).name == "bob"


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize(("per_minute", "at_once"), [(60, 10), (6, 1), (1, 1), (100, 15), (7, 7)])
async def test_ten_times_the_rate_gets_the_rate(per_minute: int, at_once: int, time: Clock) -> None:
    store, item, passed = SharedStore(), rate(per_minute), 0
    for number in range(10 * per_minute):
        passed += await store.hit(item, "alice") == 0
        assert number >= 10 * at_once or passed <= at_once
        time.now += 6.001 / per_minute
    assert passed == pytest.approx(per_minute, abs=at_once)


async def test_of_several_gateways_a_key_has_one_rate(file: Path) -> None:
    server = FakeServer()
    rings = [KeyRing(file=file, store=SharedStore(FakeAsyncRedis(server=server))) for _ in range(3)]
    await rings[0].identify(bearer("bob"))
    for ring in rings:
        with pytest.raises(RateLimited):
            await ring.identify(bearer("bob"))
    server.connected = False
    assert (await rings[1].identify(bearer("bob"))).name == "bob", "each counts for itself while the store is away"
    with pytest.raises(RateLimited):
        await rings[1].identify(bearer("bob"))


HR = Scope(collections=("staff", "notes"), filters=(Filter(field="team", equals="hr dept"),))


def test_a_file_of_before_and_one_with_scopes_are_read() -> None:
    digests = [character * 64 for character in "0123"]
    scope = '{"collections": ["staff", "notes"], "filters": [{"field": "team", "equals": "hr dept"}]}'
    keys = parse(f"# nothing\n\na {digests[0]}\nb {digests[1]} 6\nc {digests[2]} {scope}\nd {digests[3]} 6 {scope}\n")
    assert [key.scope for key in keys] == [Scope(), Scope(), HR, HR]
    assert [key.per_minute for key in keys] == [None, 6, None, 6]
    assert keys[0].scope.rights == {"ask"}, "a key that asked before neither writes nor operates now"
    assert parse("".join(key.line() for key in keys)) == keys


A = f"a {'0' * 64}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"{A}\nb s3cret", "line 2 is not: name"),
        (f"{A}\na {'1' * 64}", "line 2: there are two keys named a"),
        (A.replace("a", "default"), "line 1: default is the key of CRAGMESH_API_KEY"),
        (f"{A} {{", "line 1 is not: name"),
        # What would leave open what it means to close.
        (A + ' {"colections": ["a"]}', "colections: there is no such field"),
        (A + ' {"rights": ["read"]}', "rights"),
        (A + ' {"collections": ["../a"]}', "collections.0"),
        (A + ' {"filters": [{"field": "team", "eq": "hr"}]}', "filters.0"),
        (A + ' {"filters": [{"field": "team"}]}', "must state one of"),
        (A + ' {"filters": [{"field": "a.b", "equals": 1}]}', "filters.0.field"),
        (A + ' {"rights": ["ask", "write"], "filters": [{"field": "team", "equals": "hr"}]}', "may only ask"),
        (A + ' {"filters": [{"field": "team", "equals": "%s"}]}' % ("x" * 250), "at most 250"),
    ],
)
def test_a_faulty_file_is_refused_by_line_and_without_its_content(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as refused:
        parse(text)
    assert "s3cret" not in str(refused.value)


async def test_a_key_is_held_to_its_rights_and_what_is_open_asks_for_none(file: Path, time: Clock) -> None:
    ring = KeyRing(key="cm_owner", file=write_keys(file, {"hr": HR}), clock=time)
    async with ring("POST", "/answer", bearer("hr")) as name:
        assert (name, current_scope.get()) == ("hr", HR)
    async with ring("DELETE", "/collections/staff", bearer("owner")):
        assert current_scope.get() == OWNER
    async with ring("GET", "/strategies", {}) as name:
        assert (name, current_scope.get()) == ("", NOBODY)
    for method, path in (("DELETE", "/collections/staff"), ("PUT", "/collections/staff/documents/1")):
        with pytest.raises(Forbidden):
            await ring(method, path, bearer("hr")).__aenter__()
    assert current_scope.get() == NOBODY


def test_the_command_line_makes_and_revokes_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "api_keys"

    def keys(*arguments: str) -> str:
        """What it prints."""
        monkeypatch.setattr("sys.argv", ["keys", str(file), *arguments])
        main()
        return capsys.readouterr().out

    key = keys("add", "alice", "--per-minute", "30").strip()
    assert len(key) > 40
    assert key not in file.read_text()
    assert parse(file.read_text()) == (Key("alice", digest(key), 30),)
    with pytest.raises(SystemExit, match="two keys named alice"):
        keys("add", "alice")
    with pytest.raises(SystemExit, match="is 1 to 9,999,999"):
        keys("add", "bob", "--per-minute", "0")
    with pytest.raises(SystemExit, match="may only ask"):
        keys("add", "bob", "--right", "write", "--where", "team=hr")
    keys("add", "bob", "--collection", "staff", "--collection", "notes", "--where", "team=hr dept")
    assert parse(file.read_text())[1].scope == HR
    assert keys("list").splitlines()[0] == "alice\t30"
    keys("revoke", "bob")
    with pytest.raises(SystemExit, match="no key named bob"):
        keys("revoke", "bob")
    keys("revoke", "alice")
    assert file.read_text() == ""
    comment = "# carol: ticket 4711, until 2027\n"
    file.write_text(f"{comment}default {'0' * 64}")
    with pytest.raises(SystemExit, match="another name"):
        keys("add", "carol")
    keys("revoke", "default")
    keys("add", "carol")
    assert (file.read_text().startswith(comment), [key.name for key in parse(file.read_text())]) == (True, ["carol"])
    keys("revoke", "carol")
    assert file.read_text() == comment


def test_keys_made_at_once_are_all_kept(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "services.gateway.keys", str(tmp_path / "api_keys"), "add")
    makers = [subprocess.Popen((*command, f"key{number}"), stdout=subprocess.DEVNULL) for number in range(3)]  # noqa: S603
    assert [maker.wait(timeout=240) for maker in makers] == [0] * 3
    kept = {key.name for key in parse((tmp_path / "api_keys").read_text())}
    assert kept == {f"key{number}" for number in range(3)}
