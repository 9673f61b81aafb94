"""API keys: several, kept as SHA-256 only, changed without a restart, each with its own rate.

    python -m services.gateway.keys FILE add NAME [--per-minute N]     make a key, print it once
        [--collection NAME ...] [--right ask|write|operate ...] [--where FIELD=VALUE ...]
    python -m services.gateway.keys FILE revoke NAME
    python -m services.gateway.keys FILE list

A line of the file is a name, the digest in hexadecimal, requests a minute where the key has a rate of its own, and
its `Scope` as JSON where that is not to ask of all collections. A plain hash is enough for keys that we make ourselves:
nobody guesses 256 random bits. To rotate a key, add one under another name, move the callers over, revoke the first.
"""

import argparse
import asyncio
import hashlib
import hmac
import math
import os
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from limits import RateLimitItem, RateLimitItemPerSecond
from pydantic import ValidationError

from services.gateway.access import ASKER, NOBODY, OWNER, Right, Scope, current_caller, current_scope, rule_for
from services.gateway.origin import require_own_name
from services.gateway.shared import SharedStore
from services.kit.budget import Clock
from services.kit.errors import Forbidden, RateLimited, Unauthorized
from services.kit.faults import faults_of, in_words
from services.kit.files import locked, whole
from services.kit.filters import parse_filter
from services.kit.telemetry import log

PREFIX = "cm_"
# The name of a gateway's single key, whose batches have all rights.
DEFAULT = "default"
# Between two looks at the file: a revoked key works this long at most.
LOOK_S = 1.0
# The window in which a rate is counted: a page that asks five questions at once is no flood.
BURST_S = 10
# Requests a minute that a key of its own rate may have.
RATES = range(1, 10_000_000)

_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]{0,63})[ \t]+(?P<digest>[0-9a-f]{64})(?:[ \t]+(?P<rate>[1-9]\d{0,6}))?"
    r"(?:[ \t]+(?P<scope>\{.*\}))?"
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key without the key: its holder's name, its digest, requests a minute (None: the gateway's own rate), scope."""

    name: str
    digest: bytes
    per_minute: int | None = None
    scope: Scope = ASKER

    def line(self) -> str:
        """The key's line in a file."""
        rate = "" if self.per_minute is None else str(self.per_minute)
        fields = (self.name, self.digest.hex(), rate, self.scope_text)
        return " ".join(filter(None, fields)) + "\n"

    @property
    def scope_text(self) -> str:
        """Its scope as JSON; empty where it is the usual one."""
        return self.scope.model_dump_json(exclude_defaults=True) if self.scope != ASKER else ""


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def parse(text: str) -> tuple[Key, ...]:
    """The keys of a file, without empty lines and comments (#).

    Raises:
        ValueError: a line is no key, or repeats a name; the message names the line, and never its content.
    """
    keys: dict[str, Key] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number} is not: name, SHA-256 in hexadecimal, requests a minute if any, scope")
        if match["name"] == DEFAULT:
            raise ValueError(f"line {number}: {DEFAULT} is the key of CRAGMESH_API_KEY: give this one another name")
        if match["name"] in keys:
            raise ValueError(f"line {number}: there are two keys named {match['name']}")
        rate = int(match["rate"]) if match["rate"] else None
        try:
            scope = Scope.model_validate_json(match["scope"] or "{}")
        except ValidationError as error:
            raise ValueError(f"line {number}: the scope: {in_words(faults_of(error))}") from error
        keys[match["name"]] = Key(match["name"], bytes.fromhex(match["digest"]), rate, scope)
    return tuple(keys.values())


def rate(per_minute: int) -> RateLimitItem:
    """A moving window of `BURST_S` or less for so many requests a minute; longer where a whole number needs it."""
    whole = math.gcd(per_minute, 60)
    times = max(1, BURST_S * whole // 60)
    return RateLimitItemPerSecond(per_minute // whole * times, 60 // whole * times)


class KeyRing:
    """The keys of a gateway, with their scopes and rates.

    Args:
        key: a single key in plain text, for a mesh of one's own; its holder is named `default` and may do all.
        file: a file of keys; one that cannot be read lets nobody in.
        per_minute: requests a minute of a key that has no rate of its own; 0 is no limit.
        store: counts rates, by the key's name.
        hosts: names beside its own under which the gateway is reached where no key is needed.
    """

    def __init__(
        self,
        *,
        key: str = "",
        file: Path | None = None,
        per_minute: int = 0,
        store: SharedStore | None = None,
        hosts: Iterable[str] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        self._default = (Key(DEFAULT, digest(key), scope=OWNER),) if key else ()
        self._file = file
        self._per_minute = per_minute
        self._clock = clock
        self._keys = self._default
        self._version: tuple[int, int, int] | None = None
        self._looked_at = -math.inf
        self._lock = asyncio.Lock()
        self._store = store or SharedStore()
        self._hosts = frozenset(hosts)

    @property
    def asks(self) -> bool:
        """Whether a key is needed at all."""
        return bool(self._default or self._file)

    @asynccontextmanager
    async def __call__(self, method: str, path: str, headers: Mapping[str, str]) -> AsyncIterator[str]:
        """Serve a request under the scope of its key; yields the key's name, empty where none is needed.

        Raises:
            Unauthorized: there is no key, or an unknown one.
            Forbidden: it lacks the route's right; of a gateway without keys, it is sent to a foreign name.
            RateLimited: its holder asked too often; `Retry-After` says when to come again.
        """
        if not self.asks:
            require_own_name(headers, self._hosts)
        right, is_open = rule_for(method, path)
        name, scope = "", NOBODY if is_open else OWNER
        if self.asks and not is_open:
            key = await self.identify(headers)
            name, scope = key.name, key.scope
            if right and right not in scope.rights:
                raise Forbidden(f"this key may not {right}")
        scope_token, caller_token = current_scope.set(scope), current_caller.set(name)
        try:
            yield name
        finally:
            current_scope.reset(scope_token)
            current_caller.reset(caller_token)

    async def identify(self, headers: Mapping[str, str]) -> Key:
        """The key of a request.

        Raises:
            Unauthorized: there is no key, or an unknown one.
            RateLimited: its holder asked too often.
        """
        await self._look()
        scheme, _, token = headers.get("authorization", "").partition(" ")
        presented = digest(token.strip())
        # All are compared, so that the time says nothing about which one, if any, was close.
        matches = [key for key in self._keys if hmac.compare_digest(key.digest, presented)]
        if not matches or scheme.lower() != "bearer":
            raise Unauthorized("send an API key of this gateway as a bearer token")
        key = matches[-1]
        per_minute = key.per_minute or self._per_minute
        if per_minute and (wait_s := await self._store.hit(rate(per_minute), key.name)):
            raise RateLimited(f"this key may ask {per_minute} times a minute", retry_after_s=math.ceil(wait_s))
        return key

    async def scope_of(self, name: str) -> Scope | None:
        """The present scope of a key, for work that outlives its request; None where the key has been revoked."""
        if not self.asks:
            return OWNER
        await self._look()
        return next((key.scope for key in self._keys if key.name == name), None)

    async def _look(self) -> None:
        if self._file is None or self._clock() - self._looked_at < LOOK_S:
            return
        async with self._lock:
            if self._clock() - self._looked_at < LOOK_S:
                return
            await asyncio.to_thread(self._read, self._file)
            self._looked_at = self._clock()

    def _read(self, file: Path) -> None:
        try:
            stat = file.stat()
            version = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if version == self._version:
                return
            keys = parse(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            # Closed and not open: a configured file means that keys are wanted.
            log.error("API keys cannot be read", file=str(file), error=str(error))
            self._keys, self._version = self._default, None
            return
        self._keys, self._version = (*self._default, *keys), version
        log.info("API keys read", keys=len(keys))


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _add(file: Path, args: argparse.Namespace) -> str:
    """Add a key to a file, and return it."""
    if args.per_minute is not None and args.per_minute not in RATES:
        raise ValueError(f"--per-minute is {RATES[0]} to {RATES[-1]:,}, and without it the gateway's rate")
    secret = PREFIX + secrets.token_urlsafe(32)
    scope = Scope(collections=args.collection, rights=args.right or ["ask"], filters=args.where)
    text = _read(file)
    text += "" if text.endswith("\n") or not text else "\n"
    text += Key(args.name, digest(secret), args.per_minute, scope).line()
    parse(text)
    _replace(file, text)
    return secret


def _revoke(file: Path, name: str) -> None:
    lines = _read(file).splitlines(keepends=True)
    # Comments stay, and a key that is refused can be revoked.
    kept = [line for line in lines if line.split()[:1] != [name]]
    if kept == lines:
        raise ValueError(f"there is no key named {name}")
    _replace(file, "".join(kept))


def _replace(file: Path, text: str) -> None:
    """Replace a file at once: a gateway reads the old keys or the new, and no mixture."""
    with whole(file) as draft:
        # Digests only; and the gateway of a container is another user.
        os.fchmod(draft.fileno(), 0o644)
        draft.write(text.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="make a key and print it, once")
    add.add_argument("name")
    add.add_argument("--per-minute", type=int, metavar="N", help="its own rate, from 1 on; else the gateway's")
    add.add_argument("--collection", action="append", help="one that it may name, else all; repeat it")
    add.add_argument("--right", action="append", choices=get_args(Right), help="else ask; repeat it")
    add.add_argument(
        "--where", action="append", default=[], type=parse_filter, help="what documents must be; repeat it"
    )
    commands.add_parser("revoke", help="let a key in no more").add_argument("name")
    commands.add_parser("list", help="names and rates")
    args = parser.parse_args()
    try:
        if args.command == "list":
            for key in parse(_read(args.file)):
                print("\t".join(filter(None, (key.name, str(key.per_minute or "default"), key.scope_text))))
            return
        # Each change reads what the one before it wrote.
        with locked(args.file.with_name(f".{args.file.name}.lock")):
            if args.command == "add":
                print(_add(args.file, args))
            else:
                _revoke(args.file, args.name)
    except ValidationError as error:
        sys.exit(f"error: {in_words(faults_of(error))}")
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
