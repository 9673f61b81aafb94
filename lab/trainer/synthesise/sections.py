"""Data files in sections, each under a heading that begins with `== `."""


def sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of each section, in the order of the file."""
    blocks = (block.partition("\n") for block in text.removeprefix("== ").split("\n== "))
    return [(heading, body) for heading, _, body in blocks]
