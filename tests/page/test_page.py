"""The page over a mesh, as a visitor uses it: ask, look why, compare, browse reports, look after the services."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import HANG_UPS, ROOT, Keep, Opened, ask

pytestmark = [pytest.mark.page, HANG_UPS]

DEMO = ROOT / "services" / "cli" / "demo"
ANSWER_MS = 60_000


def answered(page: Page) -> None:
    expect(page.locator(".answer-text").first).to_be_visible(timeout=ANSWER_MS)
    expect(page.locator("#submit")).to_be_enabled(timeout=ANSWER_MS)


def choose(page: Page, strategy: str) -> None:
    page.click("#options-button")
    page.select_option("#strategy", strategy)
    page.click("#options-button")


def test_an_example_is_asked_by_one_click_and_its_stages_are_seen(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh)
    choose(page, "naive-rag")
    keep(page, "first")
    # Every state that a stage is seen in, as it changes.
    page.evaluate(
        """() => { window.__seen = []; new MutationObserver(() => {
             for (const row of document.querySelectorAll('#ask-run .stage'))
               window.__seen.push(row.dataset.stage + ':' + row.dataset.status);
             const left = document.querySelector('#ask-run .left')?.textContent ?? '';
             if (left.includes('left of')) window.__seen.push('clock:' + left);
           }).observe(document.getElementById('ask-run'), {subtree: true, childList: true, characterData: true}); }"""
    )
    page.get_by_role("button", name="In which year was K2 first climbed?").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    answered(page)
    seen = page.evaluate("[...new Set(window.__seen)]")
    for stage in ("retrieve", "generate"):
        assert seen.index(f"{stage}:started") < seen.index(f"{stage}:done")
    left = [float(re.findall(r"[\d.]+", text)[0]) for text in seen if text.startswith("clock:")]
    assert len(left) > 1, "the time left counts down"
    assert left == sorted(left, reverse=True)
    expect(page.locator("#ask-run .kind .badge")).to_have_text(
        re.compile("Answer|No answer found|The question’s premise is false")
    )
    expect(page.get_by_role("meter", name="Confidence")).to_have_attribute("aria-valuenow", re.compile(r"\d+"))
    expect(page.locator("#announcer")).to_contain_text(page.locator(".answer-text").inner_text())
    keep(page, "answer")


def test_a_citation_opens_its_page_with_the_passage_marked(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh)
    choose(page, "naive-rag")
    page.set_input_files("#files", DEMO / "apollo-11.html")
    ask(page, "Who was the first person to walk on the Moon?")
    answered(page)
    page.get_by_role("button", name="Read it in the page").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("What the model was shown is marked.")
    expect(dialog.get_by_role("heading", level=2)).to_have_text(re.compile("Apollo 11"))
    marks = dialog.locator("mark")
    assert marks.count() > 0
    expect(marks.first).to_be_in_viewport()
    shown = re.sub(r"\W+", "", page.locator(".excerpt").first.inner_text())
    assert re.sub(r"\W+", "", marks.first.inner_text()) in shown
    rows = [row.bounding_box() for row in dialog.locator("tr").all()]
    assert rows
    assert all(row is not None and row["height"] > 10 for row in rows), "tables have their place in the text"
    page.screenshot(path=ROOT / "out" / "page" / "citation.png")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_whole_budget_puts_the_time_into_proportion(mesh: str, opened: Opened) -> None:
    page = opened(mesh)
    ask(page, "In which year was K2 first climbed?")
    answered(page)
    longest = "Math.max(...[...document.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect().right))"
    close = page.evaluate(longest)
    page.get_by_role("button", name="Against the whole budget").click()
    expect(page.locator(".axis")).to_contain_text("30.0 s")
    assert page.evaluate(longest) < close


def test_the_graphs_program_is_shown_with_its_facts(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh)
    ask(page, "In which year was K2 first climbed?")
    answered(page)
    statements = page.locator(".statement")
    expect(statements.first).to_be_visible()
    assert statements.first.get_attribute("data-status") == "ok"
    expect(statements.first.locator(".t-call")).to_have_text("get_open")
    expect(statements.first.locator(".badge")).to_have_text("facts found")
    statements.first.locator("summary").click()
    expect(statements.first.locator("table")).to_contain_text("1954")
    page.get_by_text("How it came about").click()
    page.get_by_text("Prompt and reply").first.click()
    expect(page.locator(".message pre").first).to_be_visible()
    keep(page, "knowledge-graph")


def test_calculations_and_tables_are_shown_as_such(scripted_mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(scripted_mesh)
    choose(page, "electric-sheep")
    page.set_input_files("#files", DEMO / "mount-everest.html")
    ask(page, "How much higher is K2 than Dhaulagiri?")
    answered(page)
    expect(page.locator(".calculations")).to_have_text("metres by which K2 is higher: 8,611 - 8,167 = 444")
    expect(page.locator(".citation table").first).to_be_attached()
    keep(page, "calculation")


def test_two_strategies_stand_side_by_side(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh, path="/#compare")
    chips = page.get_by_role("group", name="Strategies to compare")
    for box in chips.get_by_role("checkbox").all():
        box.set_checked(False)
    for name in ("naive-rag", "closed-book"):
        chips.get_by_label(name, exact=True).check()
    page.set_input_files("#files", DEMO / "mount-everest.html")
    ask(page, "In which year was K2 first climbed?")
    rows = page.locator("#compare-summary tbody tr")
    expect(rows).to_have_count(2, timeout=2 * ANSWER_MS)
    expect(page.locator("#submit")).to_be_enabled(timeout=ANSWER_MS)
    assert rows.locator("th").all_inner_texts() == ["naive-rag", "closed-book"]
    runs = page.locator("#compare-runs .run")
    boxes = [run.bounding_box() for run in runs.all()]
    assert len(boxes) == 2
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] == boxes[1]["y"], "side by side"
    assert boxes[0]["x"] < boxes[1]["x"]
    expect(runs.first.locator("[data-stage=retrieve]")).to_be_attached()
    expect(runs.last.locator("[data-stage=retrieve]")).to_have_count(0)
    keep(page, "compare")


def test_a_report_is_browsed_with_its_pictures(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh, path="/#runs")
    links = page.locator(".runs-table a")
    if links.count() == 0:
        pytest.skip("the mesh that is asked has no reports")
    links.first.click()
    report = page.locator("#report")
    expect(report.get_by_role("heading", level=2)).to_have_text(re.compile("Evaluation of"))
    expect(report.locator("table").first).to_contain_text("all")
    pictures = report.locator("img")
    assert pictures.count() > 0
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("(image) => image.naturalWidth") > 100
    keep(page, "report")


def test_the_health_of_each_service_is_seen(mesh: str, opened: Opened, keep: Keep) -> None:
    page = opened(mesh, path="/#health")
    for name in ("gateway", "retriever", "reranker", "classifier", "kg", "generator"):
        expect(page.locator(f"[data-service={name}]")).to_have_attribute("data-ready", "true", timeout=15_000)
    expect(page.locator("[data-service=retriever]")).to_contain_text("MiniLM")
    expect(page.locator("[data-service=retriever]")).to_contain_text("closed")
    keep(page, "health")


def test_a_record_brings_question_time_and_pages(scripted_mesh: str, opened: Opened, tmp_path: Path) -> None:
    html = (DEMO / "apollo-11.html").read_text(encoding="utf-8")
    record = {
        "interaction_id": "one",
        "query": "which ship recovered the crew of apollo 11?",
        "query_time": "02/28/2024, 10:04:54 PT",
        "search_results": [{"page_name": "Apollo", "page_url": "u", "page_result": html, "page_last_modified": None}],
        "answer": "not sent",
    }
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(json.dumps(record | {"query": query}) for query in ("another?", record["query"])))
    page = opened(scripted_mesh)
    page.click("#pages-button")
    page.set_input_files("#files", file)
    page.get_by_label("Record").select_option("1")
    expect(page.locator("#query")).to_have_value(str(record["query"]))
    with page.expect_request("**/answer") as sent:
        page.click("#submit")
    body: dict[str, Any] = sent.value.post_data_json or {}
    assert (body["interaction_id"], body["query_time"]) == ("one", record["query_time"])
    assert [result["page_name"] for result in body["search_results"]] == ["Apollo"]
    assert "answer" not in body
    answered(page)
    expect(page.locator(".answer-text")).to_have_text("USS Hornet")


def test_options_are_sent(scripted_mesh: str, opened: Opened) -> None:
    page = opened(scripted_mesh)
    page.click("#options-button")
    page.select_option("#strategy", "closed-book")
    page.fill("#query-time", "2024-02-28T18:04:54Z")
    page.fill("#collection", "my-corpus")
    page.locator("#budget").fill("12")
    page.get_by_label("Keep prompts").uncheck()
    with page.expect_request("**/answer") as sent:
        ask(page, "Who designed the lighthouse?")
    assert sent.value.post_data_json == {
        "query": "Who designed the lighthouse?",
        "budget_s": 12,
        "trace": False,
        "query_time": "2024-02-28T18:04:54Z",
        "collection": "my-corpus",
        "strategy": "closed-book",
    }


def test_what_the_gateway_refuses_is_said(scripted_mesh: str, opened: Opened) -> None:
    page = opened(scripted_mesh)
    page.click("#options-button")
    page.fill("#query-time", "the day before yesterday")
    ask(page, "Who designed the lighthouse?")
    expect(page.locator("#ask-run .answer")).to_contain_text("422 Invalid request")
    expect(page.locator("#ask-run .answer")).to_contain_text("query_time")


def test_files_that_are_none_are_refused_with_a_word(scripted_mesh: str, opened: Opened, tmp_path: Path) -> None:
    for name, content in {"a.pdf": b"%PDF", "b.html": b"", "c.json": b"{", "d.html": b"<p>\0</p>"}.items():
        (tmp_path / name).write_bytes(content)
    page = opened(scripted_mesh)
    page.click("#pages-button")
    page.set_input_files("#files", sorted(tmp_path.iterdir()))
    alert = page.get_by_role("alert")
    for part in ("a.pdf: a page's name", "b.html is empty", "c.json is not JSON", "d.html is not text"):
        expect(alert).to_contain_text(part)
    expect(page.locator("#pages li")).to_have_count(0)


def test_a_question_is_stopped(scripted_mesh: str, opened: Opened, generator: object) -> None:
    page = opened(scripted_mesh)
    choose(page, "closed-book")
    ask(page, "Who designed the lighthouse?")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#ask-run .kind")).to_have_text("Stopped")
    expect(page.locator("#submit")).to_be_enabled()


def test_nothing_but_the_gateway_is_asked(mesh: str, opened: Opened) -> None:
    asked: list[str] = []
    page = opened("about:blank", path="", wait=False)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(mesh, wait_until="networkidle")
    page.get_by_role("button", name="In which year was K2 first climbed?").click()
    answered(page)
    assert asked
    assert [url for url in asked if not url.startswith((mesh, "data:"))] == []
