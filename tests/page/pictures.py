"""The pictures of `docs/page.md` and the README, taken anew of a running mesh.

python -m tests.page.pictures [--gateway http://127.0.0.1:8000] [--only ask]
"""

import argparse
import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.page.conftest import ROOT

IMAGES = ROOT / "docs" / "images"
ANSWER_MS = 120_000
# A third of the bytes, for a shade here and there: git keeps every picture for good.
MAX_COLOURS = 256
K2 = "In which year was K2 first climbed?"
SHIP = "Which ship recovered the crew of Apollo 11?"
MOON = "Who was the first person to walk on the Moon?"
FILMS = "which film made more, titanic or avatar?"


@contextmanager
def opened(
    browser: Browser, url: str, *, width: int = 1280, height: int, dark: bool = False, path: str = "/"
) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(url + path, wait_until="networkidle")
    yield page
    context.close()


def answered(page: Page) -> None:
    expect(page.locator(".answer-text").first).to_be_visible(timeout=ANSWER_MS)
    expect(page.locator("#submit")).to_be_enabled(timeout=ANSWER_MS)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def example(page: Page, question: str) -> None:
    page.get_by_role("button", name=question).click()


def save(what: Page | Locator, name: str) -> None:
    with Image.open(io.BytesIO(what.screenshot())) as picture:
        picture.convert("RGB").quantize(MAX_COLOURS, dither=Image.Dither.NONE).save(
            IMAGES / f"page-{name}.png", optimize=True
        )


def ask(browser: Browser, url: str) -> None:
    with opened(browser, url, height=1250) as page:
        example(page, SHIP)
        answered(page)
        save(page, "ask")


def stages(browser: Browser, url: str) -> None:
    with opened(browser, url, height=820) as page:
        example(page, MOON)
        expect(page.locator("[data-stage=generate][data-status=started]")).to_be_visible(timeout=ANSWER_MS)
        page.locator("#ask-run .time").evaluate("(time) => time.scrollIntoView({block: 'end'})")
        save(page, "stages")


def citation(browser: Browser, url: str) -> None:
    with opened(browser, url, height=860) as page:
        page.click("#options-button")
        page.select_option("#strategy", "naive-rag")
        page.click("#options-button")
        example(page, K2)
        answered(page)
        page.get_by_role("button", name="Read it in the page").first.click()
        expect(page.locator("#page-text mark").first).to_be_visible()
        save(page, "citation")


def knowledge_graph(browser: Browser, url: str) -> None:
    with opened(browser, url, height=1200) as page:
        page.fill("#query", FILMS)
        page.keyboard.press("Enter")
        answered(page)
        panel = page.get_by_role("region", name="Knowledge graph")
        panel.locator(".statement summary").first.click()
        save(panel, "knowledge-graph")


def compare(browser: Browser, url: str) -> None:
    with opened(browser, url, height=1150, dark=True, path="/#compare") as page:
        example(page, SHIP)
        expect(page.locator("#compare-summary tbody tr")).to_have_count(2, timeout=2 * ANSWER_MS)
        answered(page)
        save(page, "compare")


def runs(browser: Browser, url: str) -> None:
    with opened(browser, url, height=1000, path="/#runs") as page:
        page.locator(".runs-table").last.locator("a").first.click()
        pictures = page.locator("#report img")
        expect(pictures.first).to_be_visible()
        for picture in pictures.all():
            picture.scroll_into_view_if_needed()
            expect(picture).to_have_js_property("complete", True)
        page.locator("#report").evaluate("(report) => report.scrollIntoView({block: 'start'})")
        save(page, "runs")


def health(browser: Browser, url: str) -> None:
    with opened(browser, url, height=900, path="/#health") as page:
        expect(page.locator(".service")).to_have_count(6)
        save(page, "health")


def phone(browser: Browser, url: str) -> None:
    with opened(browser, url, width=390, height=1400, dark=True) as page:
        example(page, MOON)
        answered(page)
        save(page, "phone")


PICTURES: dict[str, Callable[[Browser, str], None]] = {
    picture.__name__: picture for picture in (ask, stages, citation, knowledge_graph, compare, runs, health, phone)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gateway", default="http://127.0.0.1:8000")
    parser.add_argument("--only", nargs="+", choices=sorted(PICTURES), default=list(PICTURES))
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in args.only:
            PICTURES[name](browser, args.gateway.rstrip("/"))
            print(name, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
