"""What the mesh adds to vLLM, in vLLM's own environment."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.generator.launch import INT8_KERNEL, command
from services.generator.settings import PLUGIN, GeneratorSettings
from services.kit.cpu import instruction_set, int8_kernel, library_limits

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.e2e

InVllm = Callable[..., str]


@pytest.fixture(scope="module")
def in_vllm() -> Iterator[InVllm]:
    """What a snippet prints in a process of its own that has imported vLLM."""
    settings = GeneratorSettings()
    limits = library_limits(settings.cpu_isa)
    env = {**os.environ, **limits, "PYTHONPATH": f"{PLUGIN}:{ROOT}", "VLLM_PLUGINS": "", "VLLM_LOGGING_LEVEL": "ERROR"}
    env[INT8_KERNEL] = int8_kernel(instruction_set(settings.cpu_isa))
    argv = (str(settings.interpreter.absolute()), "-W", "ignore", "-m", "tests.e2e.plugin_snippets")
    with subprocess.Popen(argv, env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - our own arguments
        assert server.stdin
        assert server.stdout
        requests, replies = server.stdin, server.stdout

        def run(code: str, *argv: str) -> str:
            print(json.dumps([code, *argv]), file=requests, flush=True)
            status, printed = json.loads(replies.readline())
            assert status == 0, printed
            return str(printed)

        yield run


def test_adapters_add_what_vllms_own_wrapper_adds(in_vllm: InVllm) -> None:
    lines = in_vllm("from tests.e2e.plugin_oracle import main; main()").splitlines()
    cases = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(cases) == 2 * 3 * 7
    for case in cases:
        ours, theirs = case["PunicaWrapperRuns"], case["PunicaWrapperCPU"]
        # Rounding differs with the order of a sum, and bfloat16 keeps eight bits of it.
        assert ours < (1e-4 if case["dtype"] == "float32" else 0.25), case
        if case["batch"] != "base and adapters":
            assert ours <= 4 * theirs + 1e-5, case


def test_a_layer_in_the_memory_of_one_that_is_gone_has_its_own_adapter(in_vllm: InVllm) -> None:
    code = """
import torch
from cragmesh_vllm.lora import PunicaWrapperRuns
from vllm.lora.layers.utils import LoRAMapping
wrapper = PunicaWrapperRuns(64, 8, "cpu")
wrapper.update_metadata(LoRAMapping((1,) * 9, (1,) * 9, is_prefill=True), [1], 1, 100)
def added():
    a, b, x, y = torch.randn(1, 1, 8, 48), torch.randn(1, 1, 96, 8), torch.randn(9, 48), torch.zeros(9, 96)
    wrapper.add_lora_linear(y, x, (a,), (b,), 1.0, (96,))
    return torch.allclose(y, x @ a[0, 0].T @ b[0, 0].T, atol=1e-3)
print(all(added() for _ in range(20)))
"""
    assert in_vllm(code).split()[-1] == "True"


def test_an_adapter_of_a_smoothed_model_adds_what_it_adds_to_the_plain_one(in_vllm: InVllm, tmp_path: Path) -> None:
    smoothed = tmp_path / "smoothing.json"
    smoothed.write_text(json.dumps({"exponents": {"norm": [0, 3, -2, 1]}, "reads": {"layer.q_proj": "norm"}}))
    code = f"""
import os, torch
os.environ["CRAGMESH_SMOOTHING"] = {str(smoothed)!r}
from cragmesh_vllm import register
register(), register()
from vllm.lora.lora_model import LoRAModel
from vllm.lora.peft_helper import PEFTHelper
helper = PEFTHelper(r=2, lora_alpha=2, target_modules=["q_proj", "o_proj"])
a, b = torch.randn(2, 4), torch.randn(4, 2)
tensors = {{f"base_model.model.layer.{{name}}.lora_{{side}}.weight": value
           for name in ("q_proj", "o_proj") for side, value in (("A", a), ("B", b))}}
loras = LoRAModel.from_lora_tensors(1, tensors, helper, device="cpu", dtype=torch.float32).loras
x, scales = torch.randn(5, 4), torch.exp2(torch.tensor([0.0, 3, -2, 1]))
print(torch.allclose(x / scales @ loras["layer.q_proj"].lora_a.T, x @ a.T, atol=1e-5))
print(torch.equal(loras["layer.o_proj"].lora_a, a), torch.equal(loras["layer.q_proj"].lora_b, b))
"""
    assert in_vllm(code).split() == ["True", "True", "True"]


def test_a_masked_cpu_is_older_for_vllm(in_vllm: InVllm) -> None:
    code = (
        "import os; os.environ['CRAGMESH_CPU_ISA'] = 'avx2'; import cragmesh_vllm.masked, torch;"
        "print(torch.cpu._is_avx512_supported(), torch.cpu._is_avx512_bf16_supported())"
    )
    assert in_vllm(code).split() == ["False", "False"]


def test_vllms_parser_takes_the_launchers_arguments(in_vllm: InVllm) -> None:
    made = command(GeneratorSettings())
    code = (
        "import sys; from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args;"
        "from vllm.utils.argparse_utils import FlexibleArgumentParser;"
        "args = make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[1:]); validate_parsed_serve_args(args);"
        "print(args.dtype, args.kv_cache_memory_bytes, args.enable_lora)"
    )
    cache = made.argv[made.argv.index("--kv-cache-memory-bytes") + 1]
    assert in_vllm(code, *made.argv[3:]).split() == ["float32", cache, "True"]


def test_a_large_vocabulary_in_int8_gives_the_products_of_its_weights(in_vllm: InVllm) -> None:
    code = (
        "import json, torch; from cragmesh_vllm.memory import int8_product; torch.manual_seed(5);"
        "w = torch.randn(9000, 96); w[3] = 0; x = torch.randn(2, 70, 96); x[..., 7] *= 20; p = int8_product(w);"
        "step = w.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127; rounded = (w / step).round() * step;"
        "print(json.dumps([[float((p(r) - r @ m.T).abs().max()) for m in (w, rounded)] for r in (x, x[0, :1])]))"
    )
    # FBGEMM's weights are in coarser steps than these, where their pairs would not fit.
    exact = int8_kernel(instruction_set(GeneratorSettings().cpu_isa)) == "onednn"
    for to_weights, to_rounded in json.loads(in_vllm(code).splitlines()[-1]):
        # What is left is the rounding of weights; that of x, at 15 bits, is hundreds of times smaller.
        assert to_rounded < (0.05 if exact else 2.5)
        assert 0.05 < to_weights < (2 if exact else 3)


def test_int8_weights_outlive_the_tensors_that_they_are_made_of(in_vllm: InVllm) -> None:
    code = """
import torch
from cragmesh_vllm.int8 import OneDnn, pack
torch.manual_seed(5)
rows = torch.randn(70, 96)
for kind in (OneDnn, pack):
    weights = kind(torch.randint(-60, 60, (9000, 96), dtype=torch.int8), torch.rand(9000, 1))
    before = weights.multiply(rows)
    # Whatever was freed is taken again.
    kept = [torch.full((9000, 1), torch.nan) for _ in range(20)] + [torch.full((9000, 96), 1, dtype=torch.int8)]
    print(torch.equal(before, weights.multiply(rows)), bool(before.isfinite().all()))
"""
    assert in_vllm(code).split()[-4:] == ["True"] * 4


def test_what_a_broken_product_generates_is_told_from_language(in_vllm: InVllm) -> None:
    code = """
from types import SimpleNamespace as Plain
from cragmesh_vllm.readiness import problem
def reply(tokens, logprob):
    return Plain(token_ids=tokens, logprobs=[{token: Plain(logprob=logprob)} for token in tokens])
print(repr(problem(reply([7, 8, 9, 1], -0.5), [7, 8, 9, 10])))
print(repr(problem(reply([4, 4], -0.5), [])))
print(problem(reply([4, 4, 4, 4], -0.5), [7, 8, 9, 10]))
print(problem(reply([7, 8, 9, 10], float("nan")), [7, 8, 9, 10]))
"""
    sound, adapter, noise, numbers = in_vllm(code).splitlines()[-4:]
    assert (sound, adapter) == ("''", "''")
    assert noise == "it does not go on with what its prompt repeats"
    assert numbers == "its probabilities are no numbers"


def test_fbgemm_multiplies_exactly_what_fits_16_bits(in_vllm: InVllm) -> None:
    code = """
import torch
from cragmesh_vllm.int8 import Fbgemm, within_16_bits
torch.manual_seed(5)
weight = torch.randint(-64, 65, (300, 129), dtype=torch.int8)
weight[7], weight[8], scales = 127, -127, torch.rand(300, 1)
before = weight.clone()
fitting, coarser = within_16_bits(weight)
print(torch.equal(weight, before), torch.equal(fitting[:7], weight[:7]), bool((coarser[:7] == 1).all()))
pairs = fitting[:, :128].unflatten(1, (-1, 2)).sum(2)
print(float((fitting * coarser - weight).abs().max() / coarser.max()), int(pairs.abs().max()))
weights, rows = Fbgemm(weight, scales), torch.randn(130, 129)
rows[3], rows[4] = 1.0, 0.0
exact = weights.held(rows).double() @ (fitting * coarser * scales).double().T
print(float((weights.multiply(rows) - exact).abs().max() / exact.abs().max()))
print(float((weights.held(rows) - rows).abs().max() / rows.abs().max()))
"""
    kept, fitted, error, held = in_vllm(code).splitlines()[-4:]
    assert kept == "True True True"
    assert float(fitted.split()[0]) <= 0.5
    assert int(fitted.split()[1]) <= 128
    assert float(error) < 1e-3
    assert float(held) < 0.5 / 127 + 1e-6


@pytest.mark.parametrize("name", sorted({"fbgemm", int8_kernel(instruction_set(GeneratorSettings().cpu_isa))} - {""}))
def test_vllms_int8_layers_are_multiplied_by_the_kernel_that_the_launcher_names(in_vllm: InVllm, name: str) -> None:
    code = f"""
import os, torch
from types import SimpleNamespace as Plain
from cragmesh_vllm import register
register(), register()
from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUInt8ScaledMMLinearKernel as Kernel
os.environ[{INT8_KERNEL!r}] = {name!r}
kernel, layer = Kernel.__new__(Kernel), torch.nn.Module()
kernel.config = Plain(is_channelwise=True, input_symmetric=True, is_static_input_scheme=False)
kernel.layer_param_names = ("weight", "weight_scale", "input_scale", "input_zero_point", "azp_adj")
layer.weight = torch.nn.Parameter(torch.randint(-60, 60, (48, 32), dtype=torch.int8), requires_grad=False)
layer.weight_scale = torch.nn.Parameter(torch.rand(48, 1), requires_grad=False)
plain, x, bias = layer.weight * layer.weight_scale, torch.randn(2, 5, 32), torch.randn(48)
kernel.process_weights_after_loading(layer)
out = kernel.apply_weights(layer, x.bfloat16(), bias)
off = (out - (x @ plain.T + bias)).abs().max() / out.abs().max()
print(layer.weight.numel(), out.dtype, tuple(out.shape), float(off) < 0.02)
"""
    assert in_vllm(code).splitlines()[-1] == "0 torch.bfloat16 (2, 5, 48) True"


def test_a_table_is_halved_only_where_nothing_is_lost(in_vllm: InVllm) -> None:
    code = (
        "import torch; from cragmesh_vllm.memory import halved; t = torch.randn(5000, 8).bfloat16().float();"
        "same = halved(t); t2 = t.clone(); t2[4999, 7] = 1 / 3;"
        "print(same.dtype, torch.equal(same.float(), t), halved(t2) is t2)"
    )
    assert in_vllm(code).splitlines()[-1].split() == ["torch.bfloat16", "True", "True"]


def test_the_engine_is_a_copy_of_the_server_where_it_needs_no_openmp_of_its_own(in_vllm: InVllm) -> None:
    # The launcher has the first: without it the CPU backend puts the `uni` executor's worker into a process of its own.
    methods = {("0", "libgomp.so.1"): "fork", ("1", "libgomp.so.1"): "spawn", ("0", "none"): "spawn"}
    # A process for each, and one import for all.
    code = f"""
import os
from cragmesh_vllm import fork, register
from vllm.config import ParallelConfig, VllmConfig
for multiprocessing, openmp in {list(methods)!r}:
    if os.fork():
        os.wait()
        continue
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = multiprocessing
    fork.OPENMP = fork.OPENMP.with_name(openmp)
    register(), register()
    VllmConfig(parallel_config=ParallelConfig(distributed_executor_backend="uni"))
    print(os.environ["VLLM_WORKER_MULTIPROC_METHOD"], flush=True)
    os._exit(0)
"""
    assert in_vllm(code).split()[-len(methods) :] == list(methods.values())


def test_the_engine_lets_go_of_the_servers_port_and_signals_alone(in_vllm: InVllm) -> None:
    code = """
import os, signal, socket
from cragmesh_vllm import register
register()
port, (near, far) = socket.create_server(("127.0.0.1", 0)), socket.socketpair()
near.setblocking(False)
signal.set_wakeup_fd(near.fileno())
reading, writing = os.pipe()
if os.fork() == 0:
    far.send(b"there")
    left = os.readlink(f"/proc/self/fd/{port.fileno()}"), signal.set_wakeup_fd(-1)
    os.write(writing, " ".join(map(str, left)).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 100).decode(), near.recv(10).decode(), signal.set_wakeup_fd(-1) == near.fileno())
number = port.getsockname()[1]
port.close()
print(socket.socket().connect_ex(("127.0.0.1", number)))
"""
    assert in_vllm(code).split()[-5:] == ["/dev/null", "-1", "there", "True", "111"]
