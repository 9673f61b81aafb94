"""What a user does: the commands with `--engine ray`, and Ray Data's own HTTP processor at a gateway's `/v1`."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor

from lab.evaluator.store import RunFolder
from tests.load.fake_generator import ANSWER
from tests.load.gateways import serving
from tests.load.restart import ready
from tests.ports import free_port
from tests.ray.cluster import Cluster, qdrant
from tests.serving import process
from tests.unit.lab.evaluator.conftest import write_questions

pytestmark = pytest.mark.anyio

EVIDENCE = ["The light of Port Ansel is 43 metres tall."]


async def cragmesh(nodes: Cluster, env: dict[str, str], *words: str) -> str:
    """The output of a command."""

    def run() -> "subprocess.CompletedProcess[str]":
        argv, settings = (
            [sys.executable, "-m", "services.cli", *words],
            os.environ | env | {"RAY_ADDRESS": nodes.address},
        )
        return subprocess.run(argv, env=settings, capture_output=True, text=True)  # noqa: S603 - our own words

    done = await asyncio.to_thread(run)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


async def test_a_folder_and_records_are_indexed_as_the_retriever_would(nodes: Cluster, tmp_path: Path) -> None:
    folder, records = tmp_path / "folder", tmp_path / "more.jsonl"
    folder.mkdir()
    (folder / "note.md").write_text("# Port Ansel\n\n" + EVIDENCE[0])
    (folder / "page.html").write_text("<html><body><p>Herring is sold at the quay.</p></body></html>")
    (folder / "picture.png").write_bytes(b"\x89PNG\x00")
    records.write_text("".join(json.dumps({"id": f"r{n}", "text": f"In {n} ships came."}) + "\n" for n in range(20)))
    port = str(free_port())
    with qdrant(tmp_path / "qdrant") as (_, url):
        root = f"http://127.0.0.1:{port}"
        env = {"CRAGMESH_QDRANT_URL": url, "CRAGMESH_RETRIEVER_PORT": port, "CRAGMESH_RETRIEVER_URL": root}
        with process(sys.executable, "-m", "services.retriever", env=os.environ | env):
            await ready(f"{root}/readyz")
            for place, counts in ((folder, "1 skipped, 2 written"), (records, "20 written")):
                output = await cragmesh(
                    nodes, env, "index", str(place), "-c", "port", "--engine", "ray", "--encoders", "2"
                )
                assert f"documents: {counts}" in output
                # The same ids and versions by the other engine: nothing is left to do.
                output = await cragmesh(nodes, env, "index", str(place), "-c", "port")
                assert "0 documents added, 0 replaced" in output
            async with httpx.AsyncClient(base_url=root, timeout=60, trust_env=False) as http:
                response = await http.post("/collections/port/search", json={"queries": ["How tall is the light?"]})
            assert "43 metres" in response.text


async def test_questions_are_asked_by_a_command(nodes: Cluster, tmp_path: Path) -> None:
    questions = write_questions(tmp_path / "questions.jsonl", 12)
    run = ("eval", "run", str(questions), "-o", str(tmp_path / "run"), "--engine", "ray", "-c", "4")
    async with serving(1, 0, store=False) as (root,):
        for _ in range(2):
            await cragmesh(nodes, {"CRAGMESH_GATEWAY_URL": root}, *run)
    lines = list(RunFolder(tmp_path / "run").predictions())
    assert len(lines) == len({line.id for line in lines}) == 12
    assert not any(line.error for line in lines)


async def test_ray_datas_http_processor_asks_v1(nodes: Cluster) -> None:
    def request(row: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": "user", "content": f"How tall is the light of Port Ansel, ship {row['id']}?"}]
        return {"payload": {"model": "cragmesh/naive-rag", "messages": messages, "evidence": EVIDENCE}}

    def reply(row: dict[str, Any]) -> dict[str, Any]:
        return {"answer": row["http_response"]["choices"][0]["message"]["content"]}

    async with serving(1, 0, store=False) as (root,):
        config = HttpRequestProcessorConfig(
            url=f"{root}/v1/chat/completions", max_retries=5, batch_size=8, concurrency=2
        )
        processor = build_processor(config, preprocess=request, postprocess=reply)
        replies = await asyncio.to_thread(lambda: processor(ray.data.range(24)).take_all())
    assert [row["answer"] for row in replies] == [ANSWER] * 24
