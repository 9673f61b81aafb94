"""A BERT encoder as an ONNX graph, made of its safetensors and its configuration in a fifth of a second.

The graph begins after the embedding tables: their rows are looked up in the mapped file, whose pages all processes of a
machine share, and it ends with the last hidden states.

In int8 a linear layer has weights quantised by column and activations by row, without calibration data. A few channels
of BERT's residual stream are ten times as large as all others (Dettmers et al. 2022, LLM.int8()); sharing their scale
costs the others their digits. The gains of the layer norms tell which they are, so they stay in float32, as a thin
product beside the large one; so do the neurons of the feed-forward blocks that weigh most.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

Floats = NDArray[np.float32]
Linear = Literal["fp32", "int8"]

OPSET, CONTRIB_OPSET, IR_VERSION = 21, 1, 10
CONTRIB = "com.microsoft"
INPUT, MASK, OUTPUT = "embedded", "mask", "states"
# Smaller tensors stay inside the graph, where the runtime can fold them.
INLINE_BYTES = 4_096
# Shares of channels and neurons that int8 leaves in float32: 32 of 384 and 64 of 1,536 for MiniLM. Half as many are 2 %
# faster, and the vector of an empty text falls to a cosine of 0.9988.
WIDE_CHANNELS, WIDE_NEURONS = 1 / 12, 1 / 24
# Standard deviations of a normalised channel that its range is taken to span.
SPREAD = 3.0
# GELU is never less, so what it returns is above zero once this is added, and has all of eight bits to itself.
GELU_FLOOR = 0.17
DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}


class NoBert(ValueError):
    """No graph can be made of a folder; the message says why."""


@dataclass(frozen=True, slots=True)
class Bert:
    """The graph, and the tables of its embeddings.

    Attributes:
        words: the word embeddings, mapped from the file, shape (vocabulary, d).
        positions: embeddings of positions and of the first token type, shape (longest, d).
        second: the second token type's embedding minus the first's, shape (d,); zeros where there is none.
        graph: an ONNX model from `INPUT` (texts, tokens, d) and `MASK` (texts, tokens) to `OUTPUT`.
        tensors: the graph's large tensors, which lie outside it.
    """

    words: Floats
    positions: Floats
    second: Floats
    graph: bytes
    tensors: Mapping[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.positions.nbytes + sum(tensor.nbytes for tensor in self.tensors.values())


def read(folder: Path, linear: Linear = "fp32", changes: Mapping[str, Floats] = MappingProxyType({})) -> Bert:
    """Make the graph of a folder's BERT.

    Args:
        changes: added to the weights of modules, by their names: an adapter's products, of the weights' shapes.

    Raises:
        NoBert: its architecture is another one, or a file is missing or damaged.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = read_safetensors(folder / "model.safetensors")
    except (OSError, ValueError, KeyError) as error:
        raise NoBert(f"{folder.name}: {error}") from error
    if reason := _unlike_bert(config):
        raise NoBert(f"{folder.name}: {reason}")
    try:
        for name, change in changes.items():
            weights[f"{name}.weight"] = np.asarray(weights[f"{name}.weight"], np.float32) + change
        return _Builder(config, weights, linear).build()
    except KeyError as error:
        raise NoBert(f"{folder.name} has no tensor {error}") from error


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file, each mapped alone, so that dropping one frees its pages.

    Raises:
        OSError: there is no such file.
        ValueError: it is no safetensors file, or holds numbers of another format than `DTYPES`.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError(f"{path.name} is no safetensors file")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"{path.name} is no safetensors file")
    tensors: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"{path.name} holds {entry['dtype']}")
        start = 8 + length + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        tensors[name.removeprefix("bert.")] = np.memmap(path, DTYPES[entry["dtype"]], "r", offset=start, shape=shape)
    return tensors


def _largest(weight: Floats) -> Floats:
    """The largest magnitude of each column's weights and of the sums of its neighbouring pairs, shape (columns,).

    Without VNNI a CPU sums products of bytes in pairs, in 16 bits: with codes of 0 to 255 a pair fits them while its
    weights, a half rounded up each, sum to no more than 128. So every CPU computes the same.
    """
    even = np.pad(weight, ((0, len(weight) % 2), (0, 0)))
    largest: Floats = np.maximum(np.abs(weight).max(axis=0), np.abs(even[::2] + even[1::2]).max(axis=0))
    return largest


def _unlike_bert(config: Mapping[str, Any]) -> str:
    expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for key, value in expected.items():
        if config.get(key, value if key != "model_type" else "") != value:
            return f"its {key} is {config.get(key)!r}, not {value!r}"
    return ""


@dataclass(slots=True)
class _Graph:
    """Nodes and tensors of a graph under construction; each method returns the names of its results."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inline: dict[str, onnx.TensorProto] = field(default_factory=dict)
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, operator: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        return self.split(operator, inputs, 1, domain=domain, **attributes)[0]

    def split(
        self, operator: str, inputs: Sequence[str], outputs: int, *, domain: str = "", **attributes: Any
    ) -> list[str]:
        name = f"{operator}.{len(self.nodes)}"
        names = [f"{name}.{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=name, domain=domain, **attributes))
        return names

    def constant(self, name: str, value: NDArray[Any] | float) -> str:
        """A tensor by name; the same name twice is the same tensor."""
        if name in self.inline:
            return name
        array = np.ascontiguousarray(value, None if isinstance(value, np.ndarray) else np.float32)
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        if array.nbytes <= INLINE_BYTES:
            tensor.raw_data = array.tobytes()
        else:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=name)
            self.tensors[name] = array
        self.inline[name] = tensor
        return name

    def serialise(self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]) -> bytes:
        graph = helper.make_graph(self.nodes, "bert", inputs, outputs, list(self.inline.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, CONTRIB_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()


class _Builder:
    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], linear: Linear) -> None:
        self._layers: int = config["num_hidden_layers"]
        self._heads: int = config["num_attention_heads"]
        self._width: int = config["hidden_size"]
        self._epsilon: float = config.get("layer_norm_eps", 1e-12)
        self._weights = weights
        self._int8 = linear == "int8"
        self._graph = _Graph()

    def build(self) -> Bert:
        graph, shape = self._graph, ("texts", "tokens", self._width)
        if self._int8:
            self._wide = self._wide_channels()
        states = self._normalise(INPUT, "embeddings")
        for layer in range(self._layers):
            states = self._feed_forward(self._attend(states, layer), layer)
        graph.nodes[-1].output[0] = OUTPUT
        content = graph.serialise(
            [
                helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, shape),
                helper.make_tensor_value_info(MASK, TensorProto.INT32, shape[:2]),
            ],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, shape)],
        )
        words = self._weights["embeddings.word_embeddings.weight"]
        positions = self._float("embeddings.position_embeddings.weight")
        types = self._float("embeddings.token_type_embeddings.weight")
        second = types[1] - types[0] if len(types) > 1 else np.zeros_like(types[0])
        return Bert(words, positions + types[0], second, content, graph.tensors)

    def _float(self, name: str) -> Floats:
        return np.asarray(self._weights[name], np.float32)

    def _attend(self, states: str, layer: int) -> str:
        graph, place = self._graph, f"encoder.layer.{layer}.attention"
        parts = [f"{place}.self.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self._float(f"{part}.weight") for part in parts]).T
        bias = np.concatenate([self._float(f"{part}.bias") for part in parts])
        joined = self._from_stream(states, weight, f"{place}.self")
        heads = graph.split("Split", [joined], 3, axis=-1, num_outputs=3)
        mixed = graph.add(
            "MultiHeadAttention",
            [*heads, graph.constant(f"{place}.self.bias", bias), MASK],
            domain=CONTRIB,
            num_heads=self._heads,
        )
        name = f"{place}.output"
        return self._residual(self._linear(mixed, self._float(f"{name}.dense.weight").T, name), states, name)

    def _feed_forward(self, states: str, layer: int) -> str:
        graph, place = self._graph, f"encoder.layer.{layer}"
        name, inner = f"{place}.output", f"{place}.intermediate.dense"
        up, bias = self._float(f"{inner}.weight").T, self._float(f"{inner}.bias")
        down = self._float(f"{name}.dense.weight").T

        def in_float32(neurons: slice | NDArray[np.int64], part: str) -> str:
            rise = graph.constant(f"{inner}.{part}", up[:, neurons])
            offset = graph.constant(f"{inner}.bias.{part}", bias[neurons])
            fall = graph.constant(f"{name}.{part}", down[neurons])
            active = graph.add("BiasGelu", [graph.add("MatMul", [states, rise]), offset], domain=CONTRIB)
            return graph.add("MatMul", [active, fall])

        if not self._int8:
            return self._residual(in_float32(slice(None), "all"), states, name)
        largest = np.argsort(-np.abs(down).max(axis=1), kind="stable")
        wide, narrow = np.split(np.asarray(largest, np.int64), [round(len(down) * WIDE_NEURONS)])
        beside = in_float32(wide, "neurons")
        rising = self._from_stream(states, up[:, narrow], inner)
        active = graph.add("BiasGelu", [rising, graph.constant(f"{inner}.bias", bias[narrow])], domain=CONTRIB)
        falling = self._int8_above_floor(active, down[narrow], name)
        return self._residual(graph.add("Add", [falling, beside]), states, name)

    def _residual(self, change: str, states: str, name: str) -> str:
        # Three plain operators, since com.microsoft's SkipLayerNormalization takes four times as long on a CPU.
        graph = self._graph
        biased = graph.add("Add", [change, graph.constant(f"{name}.bias", self._float(f"{name}.dense.bias"))])
        return self._normalise(graph.add("Add", [biased, states]), name)

    def _normalise(self, states: str, name: str) -> str:
        scale, bias = (f"{name}.LayerNorm.{part}" for part in ("weight", "bias"))
        constants = [self._graph.constant(label, self._float(label)) for label in (scale, bias)]
        return self._graph.add("LayerNormalization", [states, *constants], axis=-1, epsilon=self._epsilon)

    def _linear(self, states: str, weight: Floats, name: str) -> str:
        if self._int8:
            return self._int8_by_row(states, weight, name)
        return self._graph.add("MatMul", [states, self._graph.constant(f"{name}.weight", weight)])

    def _from_stream(self, states: str, weight: Floats, name: str) -> str:
        """A linear layer that reads the residual stream, with its large channels."""
        if not self._int8:
            return self._linear(states, weight, name)
        graph = self._graph
        indexes = graph.constant("wide.channels", self._wide)
        narrow = np.ones(self._width, np.float32)
        narrow[self._wide] = 0
        wide = graph.add("Gather", [states, indexes], axis=2)
        beside = graph.add("MatMul", [wide, graph.constant(f"{name}.wide", weight[self._wide])])
        rest = graph.add("Mul", [states, graph.constant("narrow.channels", narrow)])
        return graph.add("Add", [self._int8_by_row(rest, weight * narrow[:, None], name), beside])

    def _int8_by_row(self, states: str, weight: Floats, name: str) -> str:
        graph = self._graph
        axis = graph.constant("last.axis", np.array([-1], np.int64))
        largest = graph.add("ReduceMax", [graph.add("Abs", [states]), axis], keepdims=1)
        # Else a row of zeros would be divided by zero.
        largest = graph.add("Max", [largest, graph.constant("least", np.array([1e-8], np.float32))])
        scale = graph.add("Mul", [largest, graph.constant("of.127", np.array([1 / 127], np.float32))])
        return self._quantised(states, scale, weight, name, zero=128)[0]

    def _int8_above_floor(self, active: str, weight: Floats, name: str) -> str:
        graph = self._graph
        axis = graph.constant("last.axis", np.array([-1], np.int64))
        raised = graph.add("Add", [active, graph.constant("floor", np.array([GELU_FLOOR], np.float32))])
        largest = graph.add("ReduceMax", [raised, axis], keepdims=1)
        scale = graph.add("Mul", [largest, graph.constant("of.255", np.array([1 / 255], np.float32))])
        product, restored = self._quantised(raised, scale, weight, name, zero=0)
        lowered = np.asarray(-GELU_FLOOR * restored.sum(axis=0, dtype=np.float64), np.float32)
        return graph.add("Add", [product, graph.constant(f"{name}.floor", lowered)])

    def _quantised(self, states: str, scale: str, weight: Floats, name: str, *, zero: int) -> tuple[str, Floats]:
        """The product, and the weights that it is computed with."""
        graph = self._graph
        columns = np.maximum(_largest(weight), 1e-12).astype(np.float32) / 127
        quantised = np.rint(weight / columns).astype(np.int8)
        offset = graph.constant(f"zero.{zero}", np.array(zero, np.uint8))
        flat = graph.constant("flat", np.array([-1], np.int64))
        zeros = graph.add("Reshape", [graph.add("Expand", [offset, graph.add("Shape", [scale])]), flat])
        rows = graph.add("Flatten", [states], axis=2)
        codes = graph.add("QuantizeLinear", [rows, graph.add("Reshape", [scale, flat]), zeros], axis=0)
        codes = graph.add("Reshape", [codes, graph.add("Shape", [states])])
        inputs = [
            codes,
            graph.constant(f"{name}.int8", quantised),
            graph.constant("one", np.array(1, np.float32)),
            graph.constant(f"{name}.columns", columns),
            offset,
        ]
        product = graph.add("MatMulIntegerToFloat", inputs, domain=CONTRIB)
        return graph.add("Mul", [product, scale]), np.asarray(quantised * columns, np.float32)

    def _wide_channels(self) -> NDArray[np.int64]:
        def spans(layer: int) -> Floats:
            norm = f"encoder.layer.{layer}.attention.output.LayerNorm"
            scale, bias = self._float(f"{norm}.weight"), self._float(f"{norm}.bias")
            return np.asarray(SPREAD * np.abs(scale) + np.abs(bias), np.float32)

        widest: Floats = np.stack([spans(layer) for layer in range(self._layers)]).max(axis=0)
        count = max(1, round(self._width * WIDE_CHANNELS))
        return np.sort(np.argsort(-widest, kind="stable")[:count]).astype(np.int64)
