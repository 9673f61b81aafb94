"""What may be reached: no address inside, however it is written, and no URL with a trick in it."""

import contextlib
from ipaddress import ip_network

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.searcher.addresses import Policy, reachable
from services.searcher.errors import NotFetched, Refused
from services.searcher.fetch import _join

INSIDE = """
    127.0.0.1 127.255.255.254 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.127.255.254
    169.254.169.254 169.254.0.1 0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.0.0.8
    192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 168.63.129.16 100.100.100.200 ::1 :: fe80::1 fe80::1%eth0
    fec0::1 fc00::1 fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 ::127.0.0.1
    ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::a00:1 2002:7f00:1:: 2001:0:7f00:1:: 2001:db8::1 100::1
    nonsense 127.1
"""
OUTSIDE = ("8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8")
NUMBERS = """
    2130706433 0x7f000001 017700000001 127.1 0177.0.0.1 0x7f.0.0.1 127.0.0.01 10.0x1.2 1.2.3.4.5 256.1.1.1
"""


@pytest.mark.parametrize("address", [*INSIDE.split(), *OUTSIDE])
def test_addresses_outside_are_reachable_and_no_others(address: str) -> None:
    assert reachable(address) is (address in OUTSIDE)


@pytest.mark.parametrize(("address", "allowed"), [("10.1.2.3", True), ("10.2.0.1", False), ("::ffff:10.1.2.3", True)])
def test_a_network_of_ones_own_may_be_let_in(address: str, allowed: bool) -> None:
    assert reachable(address, [ip_network("10.1.0.0/16")]) is allowed


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "168.63.129.16", "fd00:ec2::254", "224.0.0.1"])
def test_metadata_is_never_let_in(address: str) -> None:
    assert not reachable(address, [ip_network("0.0.0.0/0"), ip_network("::/0")])


TRICKS = """
    http://127.0.0.1/ http://[::1]/ http://[::ffff:169.254.169.254]/ http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/
    http://169.254.169.254./latest/meta-data http://①②⑦.⓪.⓪.①/ http://１２７.0.0.1/ http://127。0。0。1/ http://localhost/
    http://a.localhost./ http://metadata.google.internal/ http://user@example.org/ http://user:pass@example.org/
    http://example.org@169.254.169.254/ http://example.org:22/ https://example.org:80443/ file:///etc/passwd
    gopher://example.org/ ftp://example.org/ data:text/html,hello javascript:alert(1) //example.org/ example.org
    http:// http:///path
"""
LONG = "http://example.org/" + "a" * 5_000
# Resolvers take them for addresses.
NUMERIC = [f"http://{number}/" for number in NUMBERS.split()]


@pytest.mark.parametrize(
    "url", [*TRICKS.split(), *NUMERIC, "http://exa mple.org/", "http://example.org/\r\nHost: other", LONG, ""]
)
def test_urls_with_a_trick_are_refused(url: str) -> None:
    with pytest.raises(Refused):
        Policy().check(url)


PARTS = "http https: // / \\ @ [ ] ::1 % %25 xn-- é ① 。 .. ? # � 2130706433 127.0.0.1 :80 :99999 _ example.org"
PIECES = st.sampled_from([*PARTS.split(), " ", "\x00", "\n", "a" * 70])


@given(st.lists(PIECES, max_size=8).map("".join), st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_is_no_url_is_refused_and_nothing_else_happens(text: str, whole: bool) -> None:
    for ask in (Policy().check, lambda location: Policy().check(_join(httpx.URL("http://example.org/a"), location))):
        with contextlib.suppress(NotFetched):
            assert ask(f"http://{text}" if whole else text).scheme in ("http", "https")


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://Example.org/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
    ],
)
def test_honest_urls_may_be_asked(url: str, plain: str) -> None:
    assert Policy().check(url).copy_with(host=Policy().check(url).raw_host.decode()) == plain


@pytest.mark.parametrize(
    ("host", "there"),
    [
        ("example.org", True), ("www.example.org", True), ("bad.example.org", False), ("x.bad.example.org", False),
        ("notexample.org", False), ("example.org.evil.net", False), ("example.org.", True),
    ],
)  # fmt: skip
def test_lists_of_domains_hold_for_those_below(host: str, there: bool) -> None:
    policy = Policy(allow=["example.org"], deny=["bad.example.org"])
    with contextlib.nullcontext() if there else pytest.raises(Refused):
        policy.check(f"https://{host}/")
