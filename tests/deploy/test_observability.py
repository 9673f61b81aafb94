"""Alerts by promtool, the series of alerts and dashboards, and a real Prometheus that scrapes a real gateway."""

import json
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from services.cli.contracts import APPS
from services.gateway.access import QUESTIONS
from services.kit.telemetry import Metrics
from tests.deploy import exported
from tests.deploy.conftest import ROOT, run, tool
from tests.ports import free_port
from tests.serving import process

FOLDER = ROOT / "deploy" / "observability"
# May be away: it runs only where collections are kept on a server.
OPTIONAL_JOBS = {"qdrant", "searcher"}
# Of vLLM 0.32, read from a running engine.
VLLM = {
    "vllm:generation_tokens_total",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:prefix_cache_hits_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prompt_tokens_total",
    "vllm:request_queue_time_seconds_bucket",
    "vllm:time_to_first_token_seconds_bucket",
}


def series() -> set[str]:
    """Names of all series of ours."""
    names = set()
    for family in Metrics("test").registry.collect():
        suffixes = {"counter": ("_total", "_created"), "histogram": ("_bucket", "_count", "_sum", "_created")}.get(
            family.type, ("",)
        )
        names |= {family.name + suffix for suffix in suffixes}
    return names


def expressions() -> list[str]:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((FOLDER / "grafana/dashboards/cragmesh.json").read_text())
    return alerts + [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]


def test_alerts_and_dashboards_ask_for_series_that_exist() -> None:
    asked = {name for text in expressions() for name in re.findall(r"\b(?:cragmesh|vllm:)\w+", text)}
    assert asked
    assert asked <= series() | VLLM


Matcher = tuple[str, str, str]


def selectors() -> list[tuple[str, tuple[Matcher, ...]]]:
    """Every series that alerts and dashboards select, with its matchers: label, operator, value."""
    return [
        (name, tuple(re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', inner)))
        for text in expressions()
        for name, inner in re.findall(r"\b(\w[\w:]*){([^}]*)}", text)
    ]


def holds(matcher: Matcher, value: str) -> bool:
    """Whether a label of this value passes; `exported.ANY` always does."""
    _, operator, wanted = matcher
    found = re.fullmatch(wanted, value) if operator.endswith("~") else wanted == value
    return value == exported.ANY or bool(found) != operator.startswith("!")


def test_alerts_and_dashboards_ask_for_labels_that_services_export() -> None:
    known = {
        "service": set(APPS),
        "route": exported.routes(),
        "cause": exported.causes(),
        "stage": {labels.stage for labels in exported.stages()},
        "part": {labels.part for labels in exported.stages()},
    }
    asked = [(name, matcher) for name, matchers in selectors() for matcher in matchers if name.startswith("cragmesh_")]
    assert {matcher[0] for _, matcher in asked} >= {"service", "route", "cause", "part"}
    for name, (label, operator, value) in asked:
        # Each alternative, and what is left out too: a service that is misspelt is not left out.
        for word in value.split("|") if label in known else ():
            assert exported.ANY in known[label] or word in known[label], f"{name}{{{label}{operator}{value}}}"


def test_questions_count_by_whatever_door_they_come() -> None:
    doors = [
        (matchers, set(value.split("|")))
        for name, matchers in selectors()
        if name.startswith("cragmesh_request")
        for label, operator, value in matchers
        if label == "route"
    ]
    late = [routes for matchers, routes in doors if ("status", "=", "504") in matchers]
    assert late == [QUESTIONS] * 2
    # Of the others `/papers` writes no answer, and `/mcp` also tells at once which tools there are.
    assert all(routes in (QUESTIONS, {"/answer", "/v1/chat/completions"}) for _, routes in doors)
    assert len(doors) == 8


def test_the_dashboard_reads_the_prometheus_that_there_is() -> None:
    text = (FOLDER / "grafana/dashboards/cragmesh.json").read_text()
    board = json.loads(text)
    (variable,) = board["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    sources = set(re.findall(r'"type": "prometheus",\s+"uid": "([^"]*)"', text))
    assert sources == {f"${{{variable['name']}}}"}


def test_stages_that_are_asked_for_are_observed_with_all_their_labels() -> None:
    for name, matchers in selectors():
        if name.startswith("cragmesh_stage_seconds"):
            about = [matcher for matcher in matchers if matcher[0] in ("service", "stage", "part")]
            assert any(
                all(holds(matcher, getattr(labels, matcher[0])) for matcher in about) for labels in exported.stages()
            ), f"{name}{about}"


def test_every_service_with_a_queue_tells_how_long_work_waits_in_it() -> None:
    telling = {labels.service for labels in exported.stages() if labels.part == "queue"}
    assert telling == exported.importers("services.kit.batcher", "Batcher") | {"gateway"}


def test_the_jobs_of_the_alerts_are_scraped_and_missed_when_they_are_away() -> None:
    jobs = {job["job_name"] for job in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]}
    asked = {
        word for name, matchers in selectors() if name == "up" for _, _, value in matchers for word in value.split("|")
    }
    assert asked == jobs
    missed = {job for text in expressions() for job in re.findall(r'absent\(up{job="(\w+)"}\)', text)}
    assert missed == jobs - OPTIONAL_JOBS


def test_every_alert_has_a_test_that_sees_it_fire_and_one_that_sees_it_silent() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = [
        case
        for test in yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_the_alerts_do_what_their_tests_say() -> None:
    result = run(tool("promtool"), "test", "rules", str(FOLDER / "alerts_test.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_configuration_is_valid_and_scrapes_every_service() -> None:
    result = run(tool("promtool"), "check", "config", str(FOLDER / "prometheus.yml"))
    assert result.returncode == 0, result.stdout + result.stderr
    jobs = {job["job_name"]: job for job in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]}
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert jobs.keys() == {*APPS, "generator", *OPTIONAL_JOBS}
    for name, job in jobs.items():
        (found,) = job["dns_sd_configs"]
        assert found["names"] == [name]
        assert re.search(rf"127\.0\.0\.1[:/]{found['port']}\b", str(services[name]["healthcheck"]["test"])), name


def test_the_dashboards_queries_are_promql() -> None:
    rules = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, text in enumerate(expressions())
    ]
    document = yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]})
    result = run(tool("promtool"), "check", "rules", "/dev/stdin", stdin=document)
    assert result.returncode == 0, result.stdout + result.stderr


def until(what: str, seconds: float, look: Any) -> Any:
    """The first true value of `look`, asked again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := look():
                return found
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds:g} s: {what}")


@pytest.mark.slow
def test_a_real_prometheus_scrapes_a_real_gateway_and_sees_the_engine_die(tmp_path: Path) -> None:
    prometheus, gateway, generator, web = tool("prometheus"), free_port(), free_port(), free_port()
    alerts = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    for group in alerts["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            # The conditions are ours; only the patience is a test's.
            rule.pop("for", None)
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(alerts))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for name, port in (("gateway", gateway), ("generator", generator))
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    env = {
        "PATH": "/usr/bin:/bin",
        "CRAGMESH_GATEWAY_PORT": str(gateway),
        "CRAGMESH_GENERATOR_URL": f"http://127.0.0.1:{generator}",
        "CRAGMESH_RETRIEVER_URL": "http://127.0.0.1:9",
        "CRAGMESH_RERANKER_URL": "http://127.0.0.1:9",
        "CRAGMESH_CLASSIFIER_URL": "http://127.0.0.1:9",
        "CRAGMESH_KG_URL": "http://127.0.0.1:9",
    }
    with ExitStack() as stack, httpx.Client(trust_env=False, timeout=30) as http:
        engine = stack.enter_context(
            process(
                sys.executable, "-m", "tests.load.fake_generator", "--port", str(generator), env={"PATH": env["PATH"]}
            )
        )
        stack.enter_context(process(sys.executable, "-m", "services.gateway", env=env))
        arguments = (f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}")
        stack.enter_context(process(prometheus, *arguments, f"--web.listen-address=127.0.0.1:{web}"))

        def query(text: str) -> list[dict[str, Any]]:
            reply = http.get(f"http://127.0.0.1:{web}/api/v1/query", params={"query": text})
            # It says 503 while it reads its log.
            reply.raise_for_status()
            return list(reply.json()["data"]["result"])

        until("both are scraped", 90, lambda: len(query("up == 1")) == 2)
        asked = {"query": "How tall is the lighthouse?", "evidence": ["The lighthouse is 43 metres tall."]}
        answered = http.post(f"http://127.0.0.1:{gateway}/answer", json=asked | {"strategy": "naive-rag"})
        assert answered.status_code == 200
        until("the answer is counted", 20, lambda: query("sum(cragmesh_answers_total) == 1"))
        until("what is in flight is told", 20, lambda: query("cragmesh_in_flight"))
        until("births are told", 20, lambda: query('cragmesh_requests_created{route="/answer"} > time() - 600'))
        down = 'ALERTS{alertname="EngineDown", alertstate="firing"}'
        # It has fired if Prometheus was up before the engine was, and lasts until the rules are read again.
        until("the alert is quiet", 20, lambda: not query(down))
        engine.kill()
        until("the alert fires", 20, lambda: query(down))
