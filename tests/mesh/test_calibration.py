"""A generator that nothing was fitted on: it is said, calibrated by made-up questions, weighed without a restart."""

import asyncio
import json
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.evaluator.errors import BadRun
from lab.evaluator.report import files
from lab.evaluator.store import RunFolder
from services.cli import calibrate, made_up
from services.cli.synthesise import write_questions
from services.gateway import calibration, confidence
from services.gateway.calibration import STAGE, digest_of
from services.gateway.confidence import Confidence
from services.kit.settings import MeshUrls
from tests.mesh.conftest import Services, answer_to, head
from tests.mesh.test_evaluator import Through

pytestmark = pytest.mark.anyio

QUESTION = {
    "query": "who built the harbour light?",
    "evidence": ["The Harbour Light was built by Marta Lindqvist in 1864."],
    "strategy": "adaptive",
}


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LOOK_S", 0.02)
    monkeypatch.setattr(made_up, "LOOK_S", 0.02)


async def answered(gateway: httpx.AsyncClient, **change: Any) -> dict[str, Any]:
    return await answer_to(gateway, QUESTION | change)


def support(threshold: float, *names: str) -> Confidence:
    """A confidence in what the evidence supports."""
    return Confidence(answer=head(threshold, **dict.fromkeys(names or ("support",), 4.0)), fitted_on="a test")


async def test_that_nothing_is_fitted_is_said_wherever_it_is_looked_for(services: Services) -> None:
    services.generator.reply = lambda _: "Jonas Berg"
    async with services.gateway() as gateway:
        body = await answered(gateway)
        health = (await gateway.get("/services")).json()["confidence"]
        ready = (await gateway.get("/readyz")).json()
        listed = {item["name"]: item["summary"] for item in (await gateway.get("/strategies")).json()["strategies"]}
        metrics = (await gateway.get("/metrics")).text
    assert body["kind"] == "answer"
    (entry,) = (item for item in body["degraded"] if item["stage"] == STAGE)
    assert entry["reason"] == "unavailable"
    for words in (entry["detail"], health["detail"], ready["detail"], listed["adaptive"]):
        assert "confidence is fitted for fake: every answer is given" in words
        assert "about 10 minutes" in words
    assert "confidence" not in listed["db3"]
    assert (health["generator"], health["whose"]) == ("fake", "none")
    # Known in detail, and no answer that an outage degraded.
    assert 'cragmesh_degraded_total{reason="unavailable",service="gateway",stage="confidence"} 1.0' in metrics
    assert "cragmesh_answers_degraded_total{" not in metrics


async def test_the_generic_confidence_weighs_whom_nothing_was_fitted_on(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confidence, "load", lambda: {"generic": support(0.5, "support", "logprob_mean_rank")})
    services.generator.adapters = ["answer"]
    async with services.usual() as gateway:
        services.generator.reply = lambda _: "Jonas Berg"
        body = await answered(gateway)
        services.generator.reply = lambda _: "Marta Lindqvist"
        given = await answered(gateway)
        health = (await gateway.get("/services")).json()["confidence"]
    assert (body["kind"], given["kind"]) == ("unknown", "answer")
    assert given["signals"]["logprob_mean_rank"] == calibration.NEUTRAL
    assert (health["generator"], health["whose"], health["fitted_on"]) == ("fake+answer", "generic", "a test")
    assert any("a generic one weighs its answers" in item["detail"] for item in body["degraded"])


async def test_a_file_takes_effect_without_a_restart_and_a_broken_one_breaks_nothing(
    services: Services, tmp_path: Path
) -> None:
    folder = tmp_path / "confidence"
    folder.mkdir()
    (folder / "broken.json").write_text("{")
    services.generator.reply = lambda _: "Jonas Berg"
    async with services.usual(confidence_dir=folder) as gateway:
        ready = await gateway.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert "broken.json: not JSON" in ready.json()["detail"]
        assert (await answered(gateway))["kind"] == "answer"
        (folder / "fake.json").write_text(support(0.5).model_dump_json())
        async with asyncio.timeout(240):
            while (await gateway.get("/services")).json()["confidence"]["whose"] != "own":
                await asyncio.sleep(0.02)
        body = await answered(gateway)
        every = await answered(gateway, every_answer=True)
    assert (body["kind"], body["degraded"]) == ("unknown", [])
    assert (every["kind"], every["answer"]) == ("answer", "Jonas Berg")


@pytest.mark.parametrize(("caution", "kind"), [("balanced", "answer"), ("high", "unknown")])
async def test_caution_is_a_setting(
    services: Services, monkeypatch: pytest.MonkeyPatch, caution: str, kind: str
) -> None:
    model = support(0.5)
    lines = {"low": 0.3, "balanced": 0.5, "high": 0.999}
    model = model.model_copy(update={"answer": model.answer.model_copy(update={"thresholds": lines})})
    monkeypatch.setattr(confidence, "load", lambda: {"fake": model})
    services.generator.reply = lambda _: "Marta Lindqvist"
    async with services.usual(caution=caution) as gateway:
        assert (await answered(gateway))["kind"] == kind
        assert (await gateway.get("/services")).json()["confidence"]["caution"] == caution


@pytest.mark.parametrize("bare", [False, True])
async def test_a_request_has_every_answer_with_all_signals_that_a_server_has(services: Services, bare: bool) -> None:
    generator = services.generator
    generator.logprobs = generator.tokenizer = not bare
    generator.reply = lambda _: "Jonas Berg"
    async with services.usual() as gateway:
        body = await answered(gateway, every_answer=True)
        wrong = await gateway.post("/answer", json=QUESTION | {"every_answer": "perhaps"})
    assert (body["kind"], body["signals"]["support"]) == ("answer", 0)
    assert ("logprob_mean" in body["signals"]) is not bare
    assert body["degraded"] == []
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "every_answer"


def scripted(questions: list[dict[str, Any]]) -> Any:
    """A generator that knows every other answer, and makes up the rest instead of being silent."""
    gold = {line["query"]: line["label"] for line in questions}

    def reply(body: dict[str, Any]) -> str:
        said = " ".join(message["content"] for message in body["messages"])
        label = next((label for query, label in gold.items() if query in said), "i don't know")
        dice = zlib.crc32(label.encode()) % 4
        if label in ("i don't know", "invalid question"):
            return label if dice % 2 else f"Vexo Quandil {dice}"
        return label if dice % 2 else "Vexo Quandil"

    return reply


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of made-up questions: it takes seconds."""
    path = tmp_path_factory.mktemp("made-up") / made_up.QUESTIONS
    write_questions(path, 80, made_up.SEED)
    return path.read_bytes()


@pytest.mark.slow
async def test_any_server_is_calibrated_and_then_weighed(
    services: Services, questions: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_up, "write_questions", lambda path, *_: files.write(path.parent, {path.name: questions}))
    generator = services.generator
    folder = tmp_path / "confidence"
    async with services.usual(confidence_dir=folder) as gateway:
        transport = Through(gateway)
        target = made_up.Target("http://gateway", "", "fake", tmp_path / "work")
        # No time: it is written what is to be asked, and nothing is asked.
        await made_up.ask(target, MeshUrls(), minutes=0, concurrency=2, transport=transport)
        assert not RunFolder(target.run).info().finished
        assert generator.requests == []
        lines = (target.folder / made_up.QUESTIONS).read_text().splitlines()
        generator.reply = scripted([json.loads(line) for line in lines])
        await made_up.ask(target, MeshUrls(), minutes=10, concurrency=2, transport=transport)
        run = RunFolder(target.run)
        asked = len(generator.requests)
        assert run.info().finished
        assert run.info().mesh["answers_by"] == "fake"
        await made_up.ask(target, MeshUrls(), minutes=10, concurrency=2, transport=transport)
        assert len(generator.requests) == asked, "it goes on, and does not begin anew"
        weighed = [line for line in run.predictions() if line.signals]
        assert len(weighed) > 40

        def fit() -> bytes:
            return calibrate._own([run.path], "fake", folder / "fake.json", [], tmp_path / "report", [], ablate=False)

        written = await asyncio.to_thread(fit)
        assert {path.name for path in (tmp_path / "report").iterdir()} == {"calibration.png", "risk_coverage.png"}
        assert await made_up.in_effect(target, digest_of(written), transport=transport) == ""
        given = {line.id: line for line in weighed if line.kind == "answer"}
        kept: dict[bool, list[bool]] = {True: [], False: []}
        for line in map(json.loads, lines):
            if line["id"] in given and "contexts" in line:
                known = given[line["id"]].prediction == line["label"]
                if len(kept[known]) == 10:
                    continue
                body = await answered(gateway, query=line["query"], evidence=line["contexts"])
                kept[known].append(body["kind"] == "answer")
    assert min(map(len, kept.values())) > 5
    # What the generator made up is held back far more often than what it knew.
    shares = {known: sum(kinds) / len(kinds) for known, kinds in kept.items()}
    assert shares[True] > shares[False] + 0.4
    names = set(json.loads(written)["answer"]["names"])
    assert "support" in names
    # The scripted log-probabilities are all alike, and ranks are for generators that have no confidence of their own.
    assert not {"logprob_mean", *confidence.RANKS} & names


async def test_a_generator_that_changes_meanwhile_is_noticed(
    services: Services, questions: bytes, tmp_path: Path
) -> None:
    (tmp_path / made_up.QUESTIONS).write_bytes(questions)
    async with services.usual() as gateway:
        target = made_up.Target("http://gateway", "", "another", tmp_path)
        with pytest.raises(BadRun, match="another was asked, and now fake answers"):
            await made_up.ask(target, MeshUrls(), minutes=0, concurrency=1, transport=Through(gateway))


async def test_a_gateway_that_looks_elsewhere_is_named(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_up, "IN_EFFECT_S", 0.05)
    async with services.usual() as gateway:
        target = made_up.Target("http://gateway", "", "fake", tmp_path)
        assert "no confidence is fitted" in await made_up.in_effect(target, "digest", transport=Through(gateway))
