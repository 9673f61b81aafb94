"""Where the command line writes: results to stdout, progress and errors to stderr."""

import sys
import unicodedata

from rich.console import Console
from rich.text import Text

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """Text from elsewhere without what could steer a terminal: escape sequences, reversals of direction."""
    return "".join(_harmless(character) for character in text)


def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\n\t" or category not in ("Cc", "Cf", "Cs"):
        return character
    return " " if category == "Cc" else ""


def say(message: str, style: str = "") -> None:
    """Print a message for the user, which may quote anything."""
    err.print(Text(plain(message), style=style), soft_wrap=True)


def write(text: str) -> None:
    """Write to stdout as it is, for other programs to read."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
