"""`python -m services.kit.probe URL` exits with 0 when a GET is answered with 2xx: the health check of our images.

They have no curl, and one interpreter is there anyway. Standard library only, so that it starts in a twentieth of a
second and runs beside any Python.
"""

import sys
import urllib.error
import urllib.request

# Below the orchestrator's own time-out, so that the reason is printed before it kills us.
TIMEOUT_S = 4.0


def probe(url: str) -> str:
    """Empty when the URL answers with 2xx, else the error."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:  # noqa: S310 - the operator's own URL
            reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}: {error.read(500).decode(errors='replace')}"
    except OSError as error:
        return str(error) or type(error).__name__
    return ""


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].startswith(("http://", "https://")):
        sys.exit("usage: python -m services.kit.probe URL")
    if error := probe(sys.argv[1]):
        sys.exit(error)


if __name__ == "__main__":
    main()
