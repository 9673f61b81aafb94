"""The page without a mesh: first paint, services that are down, keys, a gateway that goes away or is strange."""

import asyncio
import json
import re
import threading
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect
from starlette.types import ASGIApp, Receive, Scope, Send

from proto.answer import AnswerResponse, Citation, StageEvent
from proto.base import MAX_PAGES, Contract, StageTiming
from tests.page.conftest import HANG_UPS, NOWHERE, Keep, Opened, ask, events
from tests.page.mesh import gateway
from tests.serving import served

pytestmark = [pytest.mark.page, HANG_UPS]

STARTED = StageEvent(stage="retrieve", status="started", left_ms=29_000)


def answering(page: Page, *told: tuple[str, Contract]) -> None:
    """Every question is told this."""
    page.route("**/answer", partial(Route.fulfill, content_type="text/event-stream", body=events(*told)))


async def tell_one_stage(receive: Receive, send: Send) -> None:
    """Begin a reply, and leave it at that."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": events(("stage", STARTED)).encode(), "more_body": True})


def breaking_off(app: ASGIApp, when: threading.Event) -> ASGIApp:
    """The application, but that the connection of the first question breaks then, after one event."""
    broken = False

    async def interrupted(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal broken
        if broken or scope.get("path") != "/answer":
            await app(scope, receive, send)
            return
        broken = True
        await tell_one_stage(receive, send)
        await asyncio.to_thread(when.wait, 60)
        # The server closes the connection under a reply that its application leaves incomplete.

    return interrupted


def never_answering(app: ASGIApp, hung_up: threading.Event) -> ASGIApp:
    """The application, but that questions hear of one stage and of nothing else until they are given up."""

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != "/answer":
            await app(scope, receive, send)
            return
        await tell_one_stage(receive, send)
        while (await receive())["type"] != "http.disconnect":
            pass
        hung_up.set()

    return silent


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


def test_the_web_can_be_searched_where_there_is_a_searcher(alone: str, quiet: None, opened: Opened) -> None:
    page = opened(alone)
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_label("Strategy")).to_be_visible()
    expect(page.get_by_label("Search the web too")).to_be_hidden()
    with served(gateway(NOWHERE | {"searcher_url": "http://127.0.0.1:9"})) as url:
        page = opened(url)
        expect(page.locator("#down")).to_contain_text("searcher is down")
        page.get_by_role("button", name="Options").click()
        page.get_by_label("Search the web too").check()
        with page.expect_request("**/answer") as asked:
            ask(page)
        assert (asked.value.post_data_json or {})["search"] is True


def test_an_answer_without_services_is_honest_and_says_why(alone: str, opened: Opened) -> None:
    page = opened(alone)
    page.get_by_role("button", name="In which year was K2 first climbed?").click()
    expect(page.locator(".answer-text")).to_have_text("i don't know", timeout=40_000)
    expect(page.locator("#ask-run .kind")).to_have_text("No answer found")
    expect(page.get_by_role("region", name="What was missing")).to_contain_text("retriever unavailable")
    expect(page.locator("#ask-run [data-stage=retrieve]")).to_have_attribute("data-status", "degraded")


def test_a_key_is_asked_for_and_kept_in_the_tab_only(quiet: None, opened: Opened) -> None:
    with served(gateway(NOWHERE, api_key="s3cret")) as url:
        page = opened(url)
        ask(page)
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


def test_a_page_whose_storage_is_closed_asks_with_its_key_and_takes_no_other_signs(quiet: None, opened: Opened) -> None:
    with served(gateway(NOWHERE, api_key="s3cret")) as url:
        page = opened("about:blank", path="", wait=False)
        closed = "{ get() { throw new DOMException('', 'SecurityError'); } }"
        page.add_init_script(f"Object.defineProperty(window, 'sessionStorage', {closed})")
        page.goto(url, wait_until="networkidle")
        ask(page)
        box, use = page.get_by_label("Key", exact=True), page.get_by_role("button", name="Use it")
        box.fill("s3cret\u200b")
        use.click()
        assert "beyond ASCII" in box.evaluate("element => element.validationMessage")
        expect(page.get_by_role("dialog", name="API key")).to_be_visible()
        box.fill("s3cret")
        with page.expect_request("**/answer") as sent:
            use.click()
        assert sent.value.headers["authorization"] == "Bearer s3cret"


def test_a_gateway_that_goes_away_is_said_and_found_again(quiet: None, opened: Opened) -> None:
    page = opened("about:blank", path="", wait=False)
    with served(gateway(NOWHERE)) as url:
        page.goto(url, wait_until="networkidle")
    ask(page)
    expect(page.locator("#ask-run .answer")).to_contain_text("The gateway cannot be reached")
    expect(page.locator("#down")).to_contain_text("cannot be reached")
    expect(page.locator("#submit")).to_be_enabled()
    with served(gateway(NOWHERE), int(url.rpartition(":")[2])):
        expect(page.locator("#down")).to_contain_text("retriever is down", timeout=15_000)


@pytest.mark.parametrize("rest", ["", "event: answer\n", 'event: answer\ndata: {"answer": "cut\n\n'])
def test_a_stream_that_ends_early_is_said(alone: str, opened: Opened, rest: str) -> None:
    page = opened(alone)
    told = events(("stage", STARTED)) + rest
    page.route("**/answer", partial(Route.fulfill, content_type="text/event-stream", body=told))
    ask(page)
    expect(page.locator("#ask-run .answer")).to_contain_text("The gateway hung up")


def test_a_connection_that_breaks_costs_one_answer_and_not_the_next(quiet: None, opened: Opened) -> None:
    when = threading.Event()
    with served(breaking_off(gateway(NOWHERE), when)) as url:
        page = opened(url, path="/#compare")
        chips = page.get_by_role("group", name="Strategies to compare")
        for box in chips.get_by_role("checkbox").all():
            box.set_checked(False)
        for name in ("naive-rag", "closed-book"):
            chips.get_by_label(name, exact=True).check()
        ask(page)
        runs = page.locator("#compare-runs .run")
        expect(runs).to_have_count(2)
        first, second = runs.first, runs.last
        expect(first.locator("[data-stage=retrieve]")).to_have_attribute("data-status", "started")
        expect(second.locator(".answer")).to_have_text("Waiting for its turn")
        when.set()
        expect(first.locator(".answer")).to_contain_text("The gateway hung up")
        expect(first.locator("[data-stage=retrieve]")).to_have_attribute("data-status", "skipped")
        expect(second.locator(".answer-text")).to_have_text("i don't know", timeout=40_000)
        expect(page.locator("#submit")).to_be_enabled()
        expect(page.locator("#compare-summary tbody tr")).to_have_count(1)
        page.goto("about:blank")


def test_a_gateway_that_never_answers_is_given_up_and_told_so(quiet: None, opened: Opened) -> None:
    hung_up = threading.Event()
    with served(never_answering(gateway(NOWHERE), hung_up)) as url:
        page = opened("about:blank", path="", wait=False)
        page.clock.install()
        page.goto(url, wait_until="networkidle")
        ask(page)
        expect(page.locator("#ask-run [data-stage=retrieve]")).to_have_attribute("data-status", "started")
        # The budget of 30 seconds, and the five that it may be late.
        page.clock.fast_forward(36_000)
        expect(page.locator("#ask-run .answer")).to_contain_text("The gateway did not answer in time")
        expect(page.locator("#submit")).to_be_enabled()
        assert hung_up.wait(30)
        page.goto("about:blank")


def test_a_stage_that_runs_again_counts_for_all_that_it_took(alone: str, opened: Opened) -> None:
    runs = [
        StageTiming(start_ms=100, elapsed_ms=1_000, queue_ms=200, inference_ms=700),
        StageTiming(start_ms=5_000, elapsed_ms=2_000, queue_ms=100, inference_ms=1_800),
    ]
    page = opened(alone)
    generate = partial(StageEvent, stage="generate", left_ms=20_000)
    told = [event for timing in runs for event in (generate(status="started"), generate(status="done", timing=timing))]
    answering(page, *(("stage", event) for event in told))
    ask(page)
    stage = page.locator("#ask-run [data-stage=generate]")
    expect(stage).to_have_count(1)
    expect(stage.locator(".took")).to_have_text("3.00 s")
    expect(stage.locator(".stage-detail")).to_have_text("300 ms waiting, 2.50 s model")
    expect(page.locator("#ask-run .left")).to_have_text("7.00 s of 30 s")


def test_a_document_of_a_collection_opens_with_what_the_model_was_shown(alone: str, opened: Opened) -> None:
    text = "The lighthouse was designed by Marta Lindqvist.\nIt was lit in 1864."
    named = Citation(page=0, page_name="Harbour guide", text=text, score=0.5, document="doc-17")
    unnamed = Citation(page=1, text=text, score=0.4, document="doc-18")
    answer = AnswerResponse(
        answer="Marta Lindqvist", kind="answer", confidence=0.5, source="web", citations=(named, unnamed), strategy="x"
    )
    page = opened(alone)
    answering(page, ("answer", answer))
    ask(page)
    dialog = page.get_by_role("dialog")
    buttons = page.get_by_role("button", name="Read the passage")
    expect(buttons).to_have_count(2)
    for index, title in enumerate(("Harbour guide (doc-17)", "doc-18")):
        buttons.nth(index).click()
        expect(dialog.get_by_role("heading", level=2)).to_have_text(title)
        expect(dialog).to_contain_text("the collection holds the rest of the document")
        expect(dialog.locator("mark")).to_have_text(re.compile("Marta Lindqvist.*lit in 1864", re.DOTALL))
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


def test_pages_that_are_too_many_are_named(alone: str, opened: Opened, tmp_path: Path) -> None:
    files = [
        FilePayload(name=f"page-{number:02}.html", mimeType="text/html", buffer=b"<p>Something.</p>")
        for number in range(MAX_PAGES + 12)
    ]
    page = opened(alone)
    page.click("#pages-button")
    page.set_input_files("#files", files)
    alert = page.get_by_role("alert")
    named = ", ".join(f"page-{number}.html" for number in range(50, 60))
    expect(alert).to_have_text(f"{named} and 2 more: left out, since a question takes 50 pages")
    expect(page.locator("#pages .page-name")).to_have_count(MAX_PAGES)
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"query": "who?", "search_results": [{"page_result": "<p>x"}] * (MAX_PAGES + 2)}))
    page.set_input_files("#files", record)
    expect(alert).to_have_text("2 pages of the record: left out, since a question takes 50")
    expect(page.locator("#pages .page-name")).to_have_count(MAX_PAGES)


def test_of_two_reports_clicked_in_a_row_the_last_is_shown(quiet: None, opened: Opened, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.md").write_text(f"# Evaluation of {name}\n", encoding="utf-8")
    with served(gateway(NOWHERE, reports_dir=tmp_path)) as url:
        page = opened(url, path="/#runs")
        held: list[Route] = []
        slow = page.get_by_role("link", name="one")
        page.route(
            f"**/{(slow.get_attribute('href') or '').removeprefix('#runs/')}/report.md",
            lambda route: held.append(route),
        )
        with page.expect_request("**/report.md"):
            slow.click()
        page.get_by_role("link", name="two").click()
        headings = page.locator("#report h2")
        expect(headings).to_have_text(["Evaluation of two"])
        with page.expect_response("**/report.md"):
            held[0].continue_()
        # Time for it to be put where it does not belong.
        page.wait_for_timeout(500)
        expect(headings).to_have_text(["Evaluation of two"])
        page.goto("about:blank")


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
