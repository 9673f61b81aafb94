"""Errors of fetching a page.

NotFetched           `reason` is the word for `degraded`
  ├── Refused        "skipped": by our settings, its address or its site's robots.txt
  ├── Failed         "failed": it is missing, is no page, or breaks the protocol
  └── TooSlow        "timeout"
"""

from typing import ClassVar


class NotFetched(Exception):
    reason: ClassVar[str]


class Refused(NotFetched):
    reason = "skipped"


class Failed(NotFetched):
    reason = "failed"


class TooSlow(NotFetched):
    reason = "timeout"
