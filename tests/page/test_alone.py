"""The page without a mesh: first paint, services that are down, keys, and a gateway that goes away."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from proto.answer import StageEvent
from tests.page.conftest import HANG_UPS, Opened
from tests.page.mesh import gateway
from tests.serving import served

pytestmark = [pytest.mark.page, pytest.mark.timeout(120), HANG_UPS]

Keep = Callable[[Page, str], None]


def test_the_first_paint_waits_for_no_service(alone: str, opened: Opened) -> None:
    page = opened("about:blank", path="", wait=False)
    held: list[Route] = []
    # Whatever the page asks of a service, or about one, is never answered.
    page.route(
        re.compile(r"/(services|strategies|page/examples\.json|page/reports)$"), lambda route: held.append(route)
    )
    page.goto(alone, wait_until="load")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.fill("#query", "Who designed the lighthouse?")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    assert {route.request.url.rpartition("/")[2] for route in held} >= {"services", "strategies", "examples.json"}


def test_which_services_are_down_is_said(alone: str, opened: Opened, keep: Keep) -> None:
    page = opened(alone)
    notice = page.locator("#down")
    for name in ("retriever", "reranker", "classifier", "kg", "generator"):
        expect(notice).to_contain_text(f"{name} is down")
    page.get_by_role("link", name="Health").click()
    expect(page.locator("[data-service=retriever]")).to_have_attribute("data-ready", "false")
    expect(page.locator("[data-service=gateway]")).to_contain_text("answers without")
    keep(page, "down")


def test_an_answer_without_services_is_honest_and_says_why(alone: str, opened: Opened) -> None:
    page = opened(alone)
    page.get_by_role("button", name="In which year was K2 first climbed?").click()
    expect(page.locator(".answer-text")).to_have_text("i don't know", timeout=40_000)
    expect(page.locator("#ask-run .kind")).to_have_text("No answer found")
    expect(page.get_by_role("region", name="What was missing")).to_contain_text("retriever unavailable")
    expect(page.locator("#ask-run [data-stage=retrieve]")).to_have_attribute("data-status", "degraded")


def test_a_key_is_asked_for_and_kept_in_the_tab_only(quiet: None, opened: Opened) -> None:
    nowhere = {
        f"{name}_url": "http://127.0.0.1:9" for name in ("retriever", "generator", "kg", "classifier", "reranker")
    }
    with served(gateway(nowhere, api_key="s3cret")) as url:
        page = opened(url)
        page.fill("#query", "Who designed the lighthouse?")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="API key")
        expect(dialog).to_be_visible()
        page.get_by_label("Key", exact=True).fill("wrong")
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()
        page.get_by_label("Key", exact=True).fill("s3cret")
        with page.expect_request("**/answer") as sent:
            page.get_by_role("button", name="Use it").click()
        assert sent.value.headers["authorization"] == "Bearer s3cret"
        expect(page.locator(".answer-text")).to_be_visible(timeout=40_000)
        assert page.evaluate("sessionStorage.getItem('cragmesh.key')") == "s3cret"
        assert "s3cret" not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
        page.get_by_role("button", name="API key").click()
        page.get_by_role("button", name="Forget it").click()
        assert page.evaluate("sessionStorage.getItem('cragmesh.key')") is None


def test_a_gateway_that_goes_away_is_said_and_found_again(quiet: None, opened: Opened) -> None:
    page = opened("about:blank", path="", wait=False)
    nowhere = {
        f"{name}_url": "http://127.0.0.1:9" for name in ("retriever", "generator", "kg", "classifier", "reranker")
    }
    with served(gateway(nowhere)) as url:
        page.goto(url, wait_until="networkidle")
    page.fill("#query", "Who designed the lighthouse?")
    page.keyboard.press("Enter")
    expect(page.locator("#ask-run .answer")).to_contain_text("The gateway cannot be reached")
    expect(page.locator("#down")).to_contain_text("cannot be reached")
    expect(page.locator("#submit")).to_be_enabled()
    with served(gateway(nowhere), int(url.rpartition(":")[2])):
        expect(page.locator("#down")).to_contain_text("retriever is down", timeout=15_000)


def test_a_stream_that_breaks_off_is_said(alone: str, opened: Opened) -> None:
    page = opened(alone)
    event = StageEvent(stage="retrieve", status="started", left_ms=29_000)
    stage = f"event: stage\ndata: {event.model_dump_json()}\n\n"
    page.route("**/answer", lambda route: route.fulfill(content_type="text/event-stream", body=stage))
    page.fill("#query", "Who designed the lighthouse?")
    page.keyboard.press("Enter")
    expect(page.locator("#ask-run .answer")).to_contain_text("The gateway hung up")


def test_a_theme_is_chosen_and_kept(alone: str, opened: Opened) -> None:
    page = opened(alone)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.get_by_role("button", name="Dark theme")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    dark = page.evaluate(ground)
    assert dark != light
    page.reload(wait_until="networkidle")
    assert page.evaluate(ground) == dark


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("view", ["ask", "compare", "runs", "health"])
def test_nothing_is_wider_than_the_window(alone: str, opened: Opened, width: int, view: str) -> None:
    page = opened(alone, width=width, path=f"/#{view}")
    page.evaluate("for (const name of ['pages', 'options']) document.getElementById(`${name}-panel`).hidden = false")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
