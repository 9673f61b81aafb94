"""`python -m services.kit.probe URL [SECONDS]` exits with 0 when a GET is answered with 2xx: our images' health check.

The images have no curl, and one interpreter is there anyway. Standard library only, so that it starts in a twentieth of
a second and runs beside any Python.
"""

import sys
import urllib.error
import urllib.request

# SECONDS is below the orchestrator's own time-out, so that the reason is printed before it kills us.
TIMEOUT_S = 4.0


def probe(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Empty when the URL answers with 2xx in time, else the error."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as reply:  # noqa: S310 - the operator's own URL
            reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}: {error.read(500).decode(errors='replace')}"
    except OSError as error:
        return str(error) or type(error).__name__
    return ""


def main() -> None:
    url, *seconds = sys.argv[1:] or [""]
    if not url.startswith(("http://", "https://")) or len(seconds) > 1 or not all(map(str.isdigit, seconds)):
        sys.exit("usage: python -m services.kit.probe URL [SECONDS]")
    if error := probe(url, *map(float, seconds)):
        sys.exit(error)


if __name__ == "__main__":
    main()
