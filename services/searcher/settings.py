"""Settings of the searcher."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, HttpUrl, StringConstraints
from pydantic_settings import NoDecode

from services.kit.environment import OrNone
from services.kit.settings import KitSettings

EngineName = Literal["searxng", "brave", "tavily"]
T = TypeVar("T")


def _listed(value: Any) -> Any:
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


# In the environment: separated by commas.
Listed = Annotated[tuple[T, ...], NoDecode, BeforeValidator(_listed)]
Domain = Annotated[str, StringConstraints(to_lower=True, pattern=r"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$", max_length=253)]
Port = Annotated[int, Field(ge=1, le=65_535)]


class SearcherSettings(KitSettings):
    searcher_port: int = Field(8006, ge=1024, le=65_535)
    # Searches at a time; one more waits a quarter of a second, and is then told to come again.
    searcher_max_in_flight: int = Field(8, ge=1, le=1_000)
    search_engine: EngineName = "searxng"
    # Where one's own SearXNG is, with `json` among its formats; the others are where their providers have them.
    searxng_url: HttpUrl = HttpUrl("http://127.0.0.1:8080")
    # Brave's or Tavily's.
    search_api_key: str = Field("", repr=False)
    # Of what the engine finds, as its API has it: en, de ...
    search_language: str = Field("en", pattern=r"^[a-z]{2}$")
    # 2 asks for the question's keywords as well, which finds more and costs a second call.
    search_queries: int = Field(1, ge=1, le=2)
    # What the engine gets to answer; pages need the rest of the caller's time.
    search_engine_cap_s: float = Field(4.0, gt=0, le=30)
    # What a page may take from its first byte to its last, with its robots.txt and redirects.
    search_page_cap_s: float = Field(5.0, gt=0, le=30)
    # Of a page, inflated; the rest is cut off. A request's pages are 8 MiB in all.
    search_page_kib: int = Field(1_024, ge=16, le=4_096)
    search_redirects: int = Field(4, ge=0, le=10)
    # Sent to every site, and what robots.txt is read for; say who you are and where to reach you.
    search_user_agent: str = Field(
        "Cragmesh/1 (question answering; operator unnamed)", pattern=r"^[A-Za-z][\w-]*[ -~]*$", max_length=200
    )
    # Off only where all sites are one's own.
    search_robots: bool = True
    # http://[user:password@]host:port through which pages and hosted engines are reached. It resolves the names, so it
    # must refuse private addresses itself.
    search_proxy: OrNone[HttpUrl] = Field(None, repr=False)
    # Domains, each with those below it: all when the first is empty, and none of the second.
    search_allow_domains: Listed[Domain] = ()
    search_deny_domains: Listed[Domain] = ()
    # Networks of an intranet that may be reached although they are private, as 10.1.0.0/16; metadata never is.
    search_allow_networks: Listed[IPv4Network | IPv6Network] = ()
    search_ports: Listed[Port] = (80, 443)
    # For how long an engine's answer, a page or a robots.txt is used again, and in how much memory; 0 keeps none.
    search_cache_s: float = Field(3_600.0, ge=0, le=604_800)
    search_cache_mib: int = Field(64, ge=0, le=65_536)
    # A file that outlives a restart; memory when empty.
    search_cache_file: OrNone[Path] = None
