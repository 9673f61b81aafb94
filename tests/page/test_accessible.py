"""The page for people who use a keyboard, a screen reader, a small window or a dark one."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import HANG_UPS, ROOT, Opened

pytestmark = [pytest.mark.page, HANG_UPS]

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
DEMO = ROOT / "services" / "cli" / "demo"
# WCAG 2.2, levels A and AA, and what axe calls best practice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
GRAVE = {"serious", "critical"}


def findings(page: Page) -> list[str]:
    """What axe finds, and where."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate("(tags) => axe.run(document, {runOnly: {type: 'tag', values: tags}})", RULES)
    assert len(result["passes"]) > 15, "axe looked at something"
    return [
        f"{finding['impact']}: {finding['id']}: {node['target']}: {node['failureSummary']}"
        for finding in result["violations"]
        for node in finding["nodes"]
        if finding["impact"] in GRAVE
    ]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_grave(mesh: str, opened: Opened, dark: bool, width: int) -> None:
    # The content security policy would keep axe out.
    page = opened(mesh, dark=dark, width=width, policy=False)
    assert findings(page) == []
    page.click("#pages-button")
    page.click("#options-button")
    page.set_input_files("#files", [DEMO / "mount-everest.html", DEMO / "apollo-11.html"])
    page.select_option("#strategy", "electric-sheep")
    assert findings(page) == []
    page.fill("#query", "How much higher is K2 than Dhaulagiri?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer-text")).to_be_visible(timeout=60_000)
    for summary in page.locator("#ask-run summary").all():
        summary.click()
    assert findings(page) == []
    page.get_by_role("button", name="Read it in the page").first.click()
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.select_option("#strategy", "db3")
    page.fill("#query", "which film made more, titanic or avatar?")
    page.keyboard.press("Enter")
    expect(page.locator(".statement").first).to_be_visible(timeout=60_000)
    assert findings(page) == []
    page.get_by_role("link", name="Compare").click()
    assert findings(page) == []
    page.get_by_role("link", name="Health").click()
    expect(page.locator(".service")).to_have_count(6)
    assert findings(page) == []
    page.get_by_role("link", name="Runs").click()
    page.locator(".runs-table a").first.click()
    expect(page.locator("#report img").first).to_be_visible()
    assert findings(page) == []


def test_a_question_is_asked_and_its_page_read_by_keyboard_alone(scripted_mesh: str, opened: Opened) -> None:
    page = opened(scripted_mesh)
    focused = "document.activeElement.textContent.trim() || document.activeElement.id"
    order = []
    for _ in range(10):
        page.keyboard.press("Tab")
        order.append(page.evaluate(focused))
    assert order[:6] == ["Skip to the content", "Cragmesh", "Ask", "Compare", "Collections", "Runs"]
    assert order[-1] == "Pages"
    assert order[-2] == "query"
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("In which year was K2 first climbed?")
    # The options: a strategy that reads the pages.
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#options-panel")).to_be_visible()
    page.set_input_files("#files", DEMO / "mount-everest.html")
    page.select_option("#strategy", "naive-rag")
    page.focus("#query")
    page.keyboard.press("Enter")
    expect(page.locator(".answer-text")).to_have_text("1954", timeout=60_000)
    page.locator(".open-page").first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate("document.activeElement.className").split()[-1] == "open-page", "focus is where it was"


def test_where_the_focus_is_can_be_seen(scripted_mesh: str, opened: Opened) -> None:
    page = opened(scripted_mesh)
    for _ in range(12):
        page.keyboard.press("Tab")
        ring = page.evaluate(
            """() => { const element = document.activeElement;
                 return element.id === 'query' ? getComputedStyle(element.closest('.question')).boxShadow
                                               : getComputedStyle(element).outlineStyle; }"""
        )
        assert ring not in ("none", ""), page.evaluate("document.activeElement.outerHTML.slice(0, 80)")


def test_statuses_differ_in_shape_and_word_not_in_colour_alone(alone: str, opened: Opened) -> None:
    page = opened(alone)
    page.get_by_role("button", name="In which year was K2 first climbed?").click()
    expect(page.locator(".answer-text")).to_be_visible(timeout=40_000)
    for stage in page.locator("#ask-run .stage").all():
        status = stage.get_attribute("data-status")
        word = {"done": "done", "degraded": "failed", "skipped": "left out"}[str(status)]
        expect(stage.locator(".hidden-text")).to_have_text(f", {word}")
        expect(stage.locator(f".icon-{status}")).to_be_attached()
