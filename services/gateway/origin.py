"""Who reaches a gateway without a key: callers under an address or a name of its own, and no page of another site.

A site can have its name resolve to the gateway's address (DNS rebinding): a browser then takes the two for one origin,
and marks nothing that it reads. So the name that a request is sent to decides, whoever sends it.
"""

import ipaddress
from collections.abc import Mapping, Set
from urllib.parse import urlsplit

from services.kit.errors import Forbidden

# The last labels of names that nobody can register, as networks and clusters of one's own have.
PRIVATE = frozenset({"corp", "home", "internal", "intranet", "lan", "local", "localhost", "svc", "test"})
HOME = ".home.arpa"


def require_own_name(headers: Mapping[str, str], hosts: Set[str]) -> None:
    """See that a request is sent to an address or a name of this gateway, and by no page of another site.

    Args:
        hosts: its names that others could have registered.

    Raises:
        Forbidden: it is sent to another name, or by such a page.
    """
    host = headers.get("host", "").lower()
    if not (_is_own(_name(host)) or _name(host) in hosts):
        raise Forbidden(f"a gateway without a key does not answer as {_name(host)!r}: set CRAGMESH_HOSTS or a key")
    if (origin := headers.get("origin")) is None:
        return
    page = origin.lower().partition("://")[2]
    # A proxy may give the gateway another name than the browser has, or the name without its port.
    if _name(page) in hosts or page == host or page.rpartition(":")[0] == host:
        return
    if headers.get("sec-fetch-site") == "same-origin" and _is_own(_name(page)):
        return
    raise Forbidden(f"a page of {origin} may not ask this gateway: CRAGMESH_HOSTS names those that may")


def name_of(entry: str) -> str:
    """A name or an address as it is written in settings, with a port or without."""
    try:
        return str(ipaddress.ip_address(entry))
    except ValueError:
        return _name(entry)


def _name(place: str) -> str:
    try:
        return (urlsplit(f"//{place}").hostname or "").rstrip(".")
    except ValueError:
        return place


def _is_own(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        # Nor does anybody register a name of one label; a request without a name is no browser's.
        return "." not in name or name.endswith(HOME) or name.rpartition(".")[2] in PRIVATE
    return True
