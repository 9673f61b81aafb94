"""Web pages and a gateway without a key: its own page may ask, pages of other sites may not.

A site can have its name resolve to the gateway's address (DNS rebinding): a browser then takes the two for one origin.
Browsers mark their requests by headers that no page can change; programs send none, and are asked for nothing.
"""

import ipaddress
from collections.abc import Mapping, Set
from urllib.parse import urlsplit

from services.kit.errors import Forbidden

# The last labels of names that nobody can register, as networks of one's own have.
PRIVATE = frozenset({"corp", "home", "internal", "intranet", "lan", "local", "localhost"})


def require_own_page(headers: Mapping[str, str], hosts: Set[str]) -> None:
    """See that a browser's request comes from a page of this gateway, under an address or a name of its own.

    Args:
        hosts: its names that others could have registered.

    Raises:
        Forbidden: it comes from elsewhere.
    """
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    if origin is None and "sec-fetch-site" not in headers:
        return
    place = host if origin is None else origin.lower().partition("://")[2]
    name = _name(place)
    # A proxy may give the gateway another name than the browser has.
    if name in hosts:
        return
    if place != host:
        raise Forbidden(f"a page of {origin} may not ask this gateway: CRAGMESH_HOSTS names those that may")
    if not _is_own(name):
        raise Forbidden(f"a gateway without a key answers no page under the name {name!r}: set CRAGMESH_HOSTS or a key")


def _name(place: str) -> str:
    try:
        return (urlsplit(f"//{place}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_own(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        # Nor does anybody register a name of one label.
        return bool(name) and ("." not in name or name.rpartition(".")[2] in PRIVATE)
    return True
