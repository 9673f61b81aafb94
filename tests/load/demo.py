"""The pages that `make demo` asks about."""

from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "services" / "cli" / "demo"


def demo_pages() -> list[dict[str, str]]:
    """The demo's pages as search results."""
    return [
        {"page_name": path.stem, "page_url": f"file:{path.name}", "page_result": path.read_text("utf-8")}
        for path in sorted(DEMO.glob("*.html"))
    ]
