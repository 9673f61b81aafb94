"""The profiles are vLLM's input, so what they may say is frozen here, as vLLM 0.32.0's own parser accepted it."""

import re
from itertools import pairwise

import pytest

from services.generator.launch import read_profile
from services.generator.settings import PROFILES

KNOWN = """
block-size disable-access-log-for-endpoints distributed-executor-backend dtype enable-lora enable-prefix-caching
enforce-eager gpu-memory-utilization host kv-cache-memory-bytes max-lora-rank max-loras max-model-len
max-num-batched-tokens max-num-queued-reqs max-num-seqs model port served-model-name shutdown-timeout
structured-outputs-config tensor-parallel-size
"""
NAMES = sorted(path.stem for path in PROFILES.glob("*.yaml"))


def test_each_machine_has_one() -> None:
    assert NAMES == ["cpu", "gpu1", "t4", "t4-70b"]


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_vllms_and_given_once(name: str) -> None:
    keys = re.findall(r"^([\w-]+):", (PROFILES / f"{name}.yaml").read_text(), flags=re.MULTILINE)
    assert set(keys) <= set(KNOWN.split())
    assert len(keys) == len(set(keys)) == len(read_profile(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_has_a_comment_before_it(name: str) -> None:
    lines = (PROFILES / f"{name}.yaml").read_text().splitlines()
    bare = [
        line
        for before, line in pairwise(lines)
        if ":" in line and not line.lstrip().startswith("#") and not before.lstrip().startswith("#")
    ]
    assert bare == []


@pytest.mark.parametrize("name", NAMES)
def test_what_the_mesh_relies_on(name: str) -> None:
    profile = read_profile(name)
    fixed = {"port": 8005, "host": "127.0.0.1", "enable-lora": True, "max-lora-rank": 8, "max-model-len": 8192}
    assert {key: profile[key] for key in fixed} == fixed
    assert profile["enable-prefix-caching"] is True
    # More waiting than a step can hold makes no sense; fewer would refuse what could run.
    queued, running = profile["max-num-queued-reqs"], profile["max-num-seqs"]
    assert isinstance(queued, int)
    assert isinstance(running, int)
    assert queued > running
