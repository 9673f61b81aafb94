"""Whatever comes in as data shows as text: questions, titles, pages, facts, prompts, problems, reports, names.

Each text holds markup that would run a script in one way or another; a script that runs leaves its mark in the window,
and the fixture `opened` fails the test for it.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from proto.answer import AnswerResponse, Citation, StageEvent, StrategyInfo, Trace, TraceEvent, TraceMessage
from proto.base import MAX_PAGE_CHARS, Degradation, FieldError, Problem, StageTiming
from proto.kg import KgEntity, KgResponse, KgStatement
from services.gateway.health import ServiceHealth, Services
from tests.mesh.fakes import FakeGenerator
from tests.page.conftest import HANG_UPS, MARKER, NOWHERE, Keep, Opened, ask, events
from tests.page.mesh import gateway, scripted
from tests.serving import served

pytestmark = [pytest.mark.page, HANG_UPS]

MARK = f"{MARKER}.push(1)"
PAYLOADS = {
    "script": f"<script>{MARK}</script>",
    "image": f'<img src=x onerror="{MARK}">',
    "vector": f"<svg/onload={MARK}>",
    "frame": f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    "closing": f"</textarea></title></style></script><script>{MARK}</script>",
    "link": f'<a href="javascript:{MARK}">x</a>[x](javascript:{MARK})',
    "attribute": f'" onmouseover="{MARK}" \' autofocus onfocus={MARK} x="',
    "template": f"{{{{constructor.constructor('{MARK}')()}}}}${{{MARK}}}",
    "math": f"<math><mtext><table><mglyph><style><img src=x onerror={MARK}>",
}
# What our own page has none of.
STRANGE = (
    "iframe, object, embed, math, main script, main img:not([src^='page/']), main a[href^='javascript'], [onerror], "
    "[onload]"
)


# One after the other, as they would stand in a page.
ALL = " and ".join(PAYLOADS.values())


@pytest.fixture(params=sorted(PAYLOADS))
def payload(request: pytest.FixtureRequest) -> str:
    return PAYLOADS[request.param]


def harmless(page: Page) -> None:
    """Nothing of a payload has become an element; what is moved over does nothing either."""
    assert page.locator(STRANGE).count() == 0
    page.evaluate(
        """() => { for (const element of document.querySelectorAll('main *'))
             for (const name of ['mouseover', 'focus', 'load', 'error']) element.dispatchEvent(new Event(name)); }"""
    )


def hostile_response(text: str) -> AnswerResponse:
    """Every text of a response is the payload."""
    table = f"| {text.replace('|', '')} | b |\n|---|---|\n| 1 | {text.replace('|', '')} |"
    rows = json.dumps([{text: text, "b": {text: [text]}}])
    return AnswerResponse(
        answer=text,
        kind="answer",
        confidence=0.5,
        source="web",
        citations=(
            Citation(page=0, page_name=text, page_url=f"javascript:{text}", text=f"{text}\n\n{table}", score=0.5),
            Citation(page=0, page_name=text, text=text, score=0, source="calculator"),
            Citation(page=1, page_name=text, page_url=text, text=text, score=0.5, document=text),
        ),
        kg=KgResponse(
            status="ok",
            program=text,
            as_of=text,
            text=text,
            statements=(
                KgStatement(
                    source=text,
                    status="ok",
                    text=text,
                    rows_json=rows,
                    row_count=1,
                    value_json=json.dumps(text),
                    entities=(KgEntity(name=text, kind=text, surface=text, how=text),),
                    windows=(text,),
                    notes=(text,),
                    error=text,
                    expected=(text,),
                ),
            ),
        ),
        degraded=(Degradation(stage=text, reason=text, detail=text),),
        timings={text: StageTiming(elapsed_ms=5)},
        strategy=text,
        request_id=text,
        trace=Trace(
            events=(
                TraceEvent(
                    at_ms=1,
                    step=text,
                    kind="prompt",
                    detail=text,
                    messages=(TraceMessage(role="user", content=text),),
                    constraint=text,
                    reply=text,
                ),
            )
        ),
    )


def hostile_stream(text: str) -> str:
    stage = StageEvent(stage=text, status="degraded", timing=StageTiming(elapsed_ms=5), left_ms=9_000, detail=text)
    return events(("stage", stage), ("answer", hostile_response(text)))


@pytest.mark.parametrize("policy", [True, False], ids=["policy", "no-policy"])
def test_an_answer_shows_as_text_throughout(
    alone: str, opened: Opened, payload: str, tmp_path: Path, policy: bool
) -> None:
    """Without the content security policy too: it is the second line, and not the first."""
    page = opened(alone, policy=policy)
    page.route("**/answer", lambda route: route.fulfill(content_type="text/event-stream", body=hostile_stream(payload)))
    file = tmp_path / "page.html"
    file.write_text(
        f"<html><title>{payload}</title><body><p>Only a sentence of prose.</p>{payload}<p>{payload}</body></html>"
    )
    page.set_input_files("#files", file)
    ask(page, payload)
    expect(page.locator(".answer-text")).to_have_text(payload)
    for summary in page.locator("#ask-run summary").all():
        summary.click()
    expect(page.locator(".statement .prose")).to_have_text(payload)
    expect(page.locator(".calculations")).to_have_text(payload)
    expect(page.locator(".citation h4")).to_have_text([payload, payload])
    expect(page.locator(".message pre").first).to_have_text(payload)
    harmless(page)
    page.get_by_role("button", name="Read it in the page").click()
    expect(page.locator("#page-text")).to_contain_text("a sentence of prose")
    harmless(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Read the passage").click()
    expect(page.locator("#page-text mark")).to_have_text(payload)
    harmless(page)


@pytest.mark.parametrize("in_stream", [False, True], ids=["status", "event"])
def test_a_problem_shows_as_text(alone: str, opened: Opened, in_stream: bool) -> None:
    error = FieldError(field=ALL, message=ALL, limit=ALL)
    problem = Problem(title=ALL, status=422, detail=ALL, errors=(error,), request_id=ALL).model_dump_json()
    page = opened(alone)
    status, kind, body = 422, "application/problem+json", problem
    if in_stream:
        status, kind, body = 200, "text/event-stream", f"event: problem\ndata: {problem}\n\n"
    page.route("**/answer", lambda route: route.fulfill(status=status, content_type=kind, body=body))
    ask(page)
    expect(page.locator("#ask-run .badge")).to_have_text(f"422 {ALL}")
    expect(page.locator("#ask-run li code")).to_have_text(ALL)
    harmless(page)


def test_names_and_services_show_as_text(alone: str, opened: Opened) -> None:
    info = StrategyInfo(name=ALL, summary=ALL, default=True).model_dump()
    down = ServiceHealth(name=ALL, ready=False, reachable=True, model=ALL, detail=ALL, breaker=ALL)
    replies = {
        "**/strategies": {"strategies": [info]},
        "**/services": Services(services=(down,)).model_dump(),
        "**/page/examples.json": [ALL],
    }
    page = opened("about:blank", path="", wait=False)
    for pattern, reply in replies.items():
        page.route(pattern, partial(Route.fulfill, json=reply))
    page.goto(alone, wait_until="networkidle")
    expect(page.locator("#examples button")).to_have_text(ALL)
    expect(page.locator("#down")).to_contain_text(ALL)
    page.click("#options-button")
    expect(page.locator("#strategy-help")).to_have_text(ALL)
    harmless(page)
    for view in ("Compare", "Health"):
        page.get_by_role("link", name=view).click()
        harmless(page)


def test_a_report_shows_as_text(quiet: None, opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lines = [
        f"# {ALL}",
        f"- **{ALL}**: `{ALL}`",
        f"## {ALL}",
        f"![{ALL}](outcomes.png)",
        f"![x](javascript:{MARK})",
        "![x](//elsewhere/x.png)",
        f"| {ALL.replace('|', '')} | b |\n| --- | ---: |\n| 1 | {ALL.replace('|', '')} |",
        ALL,
    ]
    (folder / "report.md").write_text("\n\n".join(lines), encoding="utf-8")
    (folder / "outcomes.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with served(gateway(NOWHERE, reports_dir=tmp_path)) as url:
        page = opened(url, path="/#runs")
        page.locator(".runs-table a").click()
        expect(page.locator("#report")).to_contain_text(ALL)
        harmless(page)
        assert [image.get_attribute("src") or "" for image in page.locator("#report img").all()].count("") == 0
        assert page.locator("#report img:not([src^='page/reports/'])").count() == 0
        page.goto("about:blank")


@pytest.fixture
def echo(services: dict[str, str], generator: FakeGenerator, payload: str) -> Iterator[str]:
    """A mesh whose generator says the payload."""
    before = generator.reply
    generator.reply = scripted({".": payload})
    with served(gateway(services)) as url:
        yield url
    generator.reply = before


def passes_nothing_on(page: Page, payload: str, tmp_path: Path) -> None:
    """Question, title and text go through real extraction, prompts and normalisation, and the model's word back."""
    file = tmp_path / "page.html"
    file.write_text(
        f"<html><head><title>{payload.replace('<', '&lt;')}</title></head><body><main><article><h1>Lighthouse</h1>"
        f"<p>The harbour lighthouse was designed by {payload.replace('<', '&lt;')} Marta Lindqvist in 1861.</p>"
        f"<p>{payload}</p></article></main></body></html>"
    )
    page.click("#options-button")
    page.select_option("#strategy", "naive-rag")
    page.set_input_files("#files", file)
    ask(page, f"Who designed the {payload} lighthouse?")
    expect(page.locator(".answer-text")).to_be_visible(timeout=60_000)
    for summary in page.locator("#ask-run summary").all():
        summary.click()
    harmless(page)
    for button in page.get_by_role("button", name="Read it in the page").all():
        button.click()
        expect(page.locator("#page-text")).to_contain_text("Marta Lindqvist")
        harmless(page)
        page.keyboard.press("Escape")


def test_a_real_mesh_passes_nothing_on(echo: str, opened: Opened, payload: str, tmp_path: Path, keep: Keep) -> None:
    page = opened(echo)
    passes_nothing_on(page, payload, tmp_path)
    keep(page, "hostile")


def test_whichever_mesh_is_asked_passes_nothing_on(mesh: str, opened: Opened, tmp_path: Path) -> None:
    passes_nothing_on(opened(mesh), ALL, tmp_path)


@pytest.mark.parametrize("tag", ["<title", "<title ", "<title>"])
def test_a_page_of_tags_alone_is_taken_as_another_is(alone: str, opened: Opened, tmp_path: Path, tag: str) -> None:
    """Where each tag is looked at until the page's end, the tab stands still for hours."""
    file = tmp_path / "page.html"
    file.write_text(tag * (MAX_PAGE_CHARS // len(tag)))
    page = opened(alone)
    page.click("#pages-button")
    page.set_input_files("#files", file)
    expect(page.locator("#pages .page-name")).to_have_text("page.html", timeout=60_000)


def test_the_browser_itself_refuses_markup_of_text(alone: str, opened: Opened) -> None:
    """Were a sink put into a script one day, Trusted Types would stop it; and no script of a page's own may run."""
    page = opened(alone)
    refused = page.evaluate(
        """() => [
             () => { document.createElement('p').innerHTML = '<b>x</b>'; },
             () => { document.createElement('script').textContent = 'window.__ran.push(1)'; },
             () => { new DOMParser().parseFromString('<p>x</p>', 'text/html'); },
             () => { trustedTypes.createPolicy('another', {createHTML: (text) => text}); },
           ].map((sink) => { try { sink(); return ''; } catch (error) { return error.name; } })"""
    )
    assert refused == ["TypeError"] * 4
