"""What may be reached: addresses by their kind, names by lists, and each connection goes to an address that was judged.

A name is resolved once a connection, its address judged, and that address connected to: a name that changes in between
(DNS rebinding) gains nothing. Redirects are new connections.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM, gaierror, getaddrinfo

import httpcore
import httpx

from services.searcher.errors import Failed, Refused

MAX_URL_CHARS = 4_096
# Names at a time; each blocks a thread for as long as a name server is slow.
RESOLVERS = 16
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

# Whatever a setting allows: "this host", broadcast, and link-local with the metadata of clouds; Alibaba, Azure, AWS and
# Google have some elsewhere.
_NEVER = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "255.255.255.255/32",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "::/128",
        "fe80::/10",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
)
# Global by some registries, wherever they lead: IPv6 that carries an IPv4 address to a gateway, such gateways,
# addresses of protocols, and formerly site-local ones.
_SPECIAL = tuple(
    ip_network(block)
    for block in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "::/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "fec0::/10",
    )
)
# Ends in a number, as WHATWG has it: 2130706433, 0x7f.1, 0177.0.0.1 are addresses to a resolver.
_NUMERIC = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+(?:%.*)?")
# Names that only a network of one's own has.
_LOCAL = ("localhost", "local", "internal", "home.arpa")
_DOTTED = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")


def reachable(address: str, networks: Iterable[Network] = ()) -> bool:
    """Whether a page may lie at an IP address; in these private networks it may."""
    try:
        judged: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return False
    if isinstance(judged, IPv6Address):
        if judged.scope_id:
            return False
        judged = judged.ipv4_mapped or judged
    if judged.is_multicast or any(judged in network for network in _NEVER):
        return False
    if any(judged in network for network in networks):
        return True
    return judged.is_global and not any(judged in network for network in _SPECIAL)


@dataclass(frozen=True, slots=True)
class Policy:
    """Which URLs and addresses may be reached: domains with those below them, private networks, and ports.

    No domain to allow allows all; those to deny may not be reached, whatever is allowed.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    networks: Sequence[Network] = ()
    ports: Sequence[int] = (80, 443)

    def check(self, address: str) -> httpx.URL:
        """A URL that may be reached, as far as its text says; without its fragment.

        Raises:
            Refused: it may not.
        """
        try:
            url = httpx.URL(address) if len(address) <= MAX_URL_CHARS else None
        except (httpx.InvalidURL, ValueError):
            url = None
        host = url.raw_host.decode("ascii").lower().rstrip(".") if url else ""
        if url is None or not _HOST.fullmatch(host):
            raise Refused("no URL")
        if url.scheme not in ("http", "https"):
            raise Refused(f"{url.scheme or 'no'} scheme")
        if url.userinfo:
            raise Refused("a name or password in the URL")
        if (url.port or (443 if url.scheme == "https" else 80)) not in self.ports:
            raise Refused(f"port {url.port}")
        if ":" in host or _NUMERIC.search(host):
            if ":" not in host and not _DOTTED.fullmatch(host):
                raise Refused("a number for an address")
            self.judge([host])
        if not self.networks and any(_within(host, domain) for domain in _LOCAL):
            raise Refused("a name of a private network")
        if any(_within(host, domain) for domain in self.deny):
            raise Refused("a domain that is denied")
        if self.allow and not any(_within(host, domain) for domain in self.allow):
            raise Refused("a domain that is not allowed")
        return url.copy_with(fragment=None)

    def judge(self, addresses: Iterable[str]) -> None:
        """See that all addresses of a name may be reached: an honest name has no other.

        Raises:
            Refused: one may not.
        """
        for address in addresses:
            if not reachable(address, self.networks):
                raise Refused("an address that is not public")


def _within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


class Resolver:
    """The system's resolver, in threads of its own: a slow name server holds up nothing else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        entries = await loop.run_in_executor(self._threads, lambda: getaddrinfo(host, port, type=SOCK_STREAM))
        return [str(entry[4][0]) for entry in entries]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the very address that the policy judged; to sockets of this machine not at all."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = list(dict.fromkeys(await self._resolve(host, port)))
        except (gaierror, UnicodeError):
            addresses = []
        if not addresses:
            raise Failed("no address of that name")
        self._policy.judge(addresses)
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore.ConnectError):
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
