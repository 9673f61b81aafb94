"""The files for GPUs on a real engine without a card: all that they say but CUDA. Run by `make compose-test`.

What is otherwise there, and what plays vLLM's image, is in `without-cards.yml`.
"""

import os
from collections.abc import Iterator

import pytest

from tests.deploy import test_compose_up
from tests.deploy.test_compose_up import START_S, ask, built, compose

pytestmark = test_compose_up.pytestmark

# Of each folder for what is compiled, and of HOME, where Docker mounts a tmpfs without `exec`.
COMPILE = """
for folder in $TRITON_CACHE_DIR $TORCHINDUCTOR_CACHE_DIR $VLLM_CACHE_ROOT $CUDA_CACHE_PATH $HOME; do
  mkdir -p $folder && cd $folder && echo 'int seven(void) { return 7; }' > a.c && gcc -shared -o a.so a.c
  python3 -c 'import ctypes; print(ctypes.CDLL("./a.so").seven())' 2>&1 | tail -n 1
done
"""


@pytest.fixture(scope="module", params=["docker-compose.gpu1.yml", "docker-compose.gpu.yml"])
def files(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """The compose files, with their images built."""
    chosen = ("docker-compose.yml", request.param, "tests/deploy/without-cards.yml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRAGMESH_VLLM_IMAGE", "cragmesh-test/vllm")
        cpu = os.environ.get("CRAGMESH_TORCH_INDEX_URL", "https://download.pytorch.org/whl/cpu")
        patch.setenv("CRAGMESH_TORCH_CUDA_INDEX_URL", cpu)
        if not built():
            for images in (["vllm"], ["generator", "retriever", "reranker"]):
                compose("--profile", "vllm", "build", *images, files=chosen, timeout=3_000)
        try:
            yield chosen
        finally:
            compose("down", "--volumes", "--timeout", "20", files=chosen)


def test_the_generator_says_that_it_has_no_card(files: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError, match="there is no nvidia-smi"):
        compose("run", "--rm", "--no-deps", "generator", files=files)


def test_what_is_compiled_in_a_cache_is_loaded(files: tuple[str, ...]) -> None:
    lines = compose("run", "--rm", "--no-deps", "generator", "sh", "-c", COMPILE, files=files).splitlines()
    assert lines[:4] == ["7"] * 4
    assert "failed to map segment" in lines[4]


def test_all_but_the_cards_starts(files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_GENERATOR_PROFILE", "cpu")
    compose("up", "--wait", "--wait-timeout", str(START_S), files=files)
    _, reply = ask()
    assert reply.status_code == 200, reply.text
    assert {"retrieve", "rerank", "generate"} <= reply.json()["timings"].keys()
