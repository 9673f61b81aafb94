"""The exported `.proto` files are current, compile, and their canonical JSON is the JSON on the wire."""

import json
import re
from pathlib import Path
from typing import Any

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2
from google.protobuf.message import Message
from grpc_tools import protoc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, create_model

from proto.base import Contract, StageTiming
from services.cli import contracts
from tests.contract.instances import instances

ROOT = Path(__file__).parents[2]
MODELS = [model for models in contracts.contract_models().values() for model in models]
# Those that no other holds; the others are tried inside of them.
HELD = set(re.findall(r"\w+", str([model.__annotations__ for model in MODELS])))
WHOLE = [model for model in MODELS if model.__name__ not in HELD]
Messages = dict[str, type[Message]]


def compiled(root: Path, out: Path) -> descriptor_pb2.FileDescriptorSet:
    """Compile the `.proto` files below `root` with the compiler and its well-known types."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted(str(path) for path in (root / contracts.PROTO_DIR).glob("*.proto"))
    descriptors = out / "descriptors.binpb"
    options = (f"-I{root / 'proto'}", f"-I{well_known}", "--fatal_warnings")
    outputs = (f"--descriptor_set_out={descriptors}", f"--python_out={out}")
    assert protoc.main(["protoc", *options, *outputs, *sources]) == 0
    return descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Messages:
    files = compiled(ROOT, tmp_path_factory.mktemp("protoc"))
    pool = descriptor_pool.DescriptorPool()
    values = descriptor_pb2.FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(values)
    # The compiler sorts a file after its imports only within one file's needs; the pool wants all of them in order.
    waiting = {file.name: file for file in [*files.file, values]}
    while waiting:
        for name in [name for name, file in waiting.items() if not waiting.keys() & set(file.dependency)]:
            pool.Add(waiting.pop(name))
    named = {model.__name__: pool.FindMessageTypeByName(f"{contracts.PACKAGE}.{model.__name__}") for model in MODELS}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in named.items()}


def test_the_committed_files_are_current() -> None:
    assert contracts.drift(ROOT, contracts.render_protos(ROOT)) == []


def test_every_module_of_contracts_is_exported() -> None:
    written = {path.stem for path in (ROOT / contracts.PROTO_DIR).glob("*.proto")}
    assert written == {path.stem for path in (ROOT / "proto").glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("model", WHOLE, ids=lambda model: model.__name__)
@settings(max_examples=12, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_proto3_json_is_the_wire_json(messages: Messages, model: type[Contract], data: st.DataObject) -> None:
    sent = data.draw(instances(model))
    message = messages[model.__name__]

    def through(text: str, **options: Any) -> Contract:
        printed = json_format.MessageToJson(json_format.Parse(text, message()), **options)
        return model.model_validate_json(printed)

    text = sent.model_dump_json()
    assert through(text) == sent
    assert through(text, always_print_fields_with_no_presence=True) == sent
    assert through(sent.model_dump_json(exclude_unset=True)) == sent
    assert through(sent.model_dump_json(exclude_defaults=True)) == sent


def test_names_on_the_wire_are_the_models_names(messages: Messages) -> None:
    for model in MODELS:
        fields = messages[model.__name__].DESCRIPTOR.fields
        assert [field.json_name for field in fields] == list(model.model_fields), model.__name__


def test_a_removed_field_keeps_its_number_reserved_and_a_new_one_takes_none_in_use(tmp_path: Path) -> None:
    lock = tmp_path / contracts.LOCK
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"StageTiming": {"start_ms": 3, "gone": 7, "elapsed_ms": 1}}))
    for path, text in contracts.render_protos(tmp_path).items():
        (tmp_path / path).write_text(text)

    files = compiled(tmp_path, tmp_path)
    timing = next(item for file in files.file for item in file.message_type if item.name == "StageTiming")
    numbers = {field.name: field.number for field in timing.field}
    assert numbers == {"start_ms": 3, "elapsed_ms": 1, "queue_ms": 8, "inference_ms": 9}
    assert list(timing.reserved_name) == ["gone"]
    assert [(item.start, item.end) for item in timing.reserved_range] == [(7, 8)]
    assert json.loads(lock.read_text())["StageTiming"] == numbers | {"gone": 7}
    assert contracts.drift(tmp_path, contracts.render_protos(tmp_path)) == []


def test_without_the_lock_nothing_is_renumbered(tmp_path: Path) -> None:
    stray = tmp_path / contracts.PROTO_DIR / "base.proto"
    stray.parent.mkdir(parents=True)
    stray.touch()
    with pytest.raises(contracts.ContractError, match=r"numbers\.json is missing"):
        contracts.render_protos(tmp_path)


# By name: the field that proto3 cannot say.
ODD: dict[str, tuple[Any, Any]] = {
    "Nested": (tuple[tuple[int, ...], ...], ()),
    "Either": (int | str, 0),
    "MaybeList": (tuple[int, ...] | None, None),
    "NumberKeys": (dict[int, str], Field(default_factory=dict)),
    "Long": (int, Field(0, le=2**40)),
    "Bytes": (bytes, b""),
}


@pytest.mark.parametrize("name", ODD)
def test_what_proto3_cannot_say_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    model = create_model(name, __base__=Contract, field=ODD[name])
    monkeypatch.setattr(contracts, "contract_models", lambda: {"odd": [model]})
    with pytest.raises(contracts.ContractError, match=rf"^{name}\.field: "):
        contracts.render_protos(tmp_path)


def test_check_names_what_export_would_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(contracts, "APPS", {})
    monkeypatch.setattr(contracts, "render_client", dict)
    monkeypatch.setattr(contracts, "contract_models", lambda: {"base": [StageTiming]})
    base, odd = (tmp_path / contracts.PROTO_DIR / f"{name}.proto" for name in ("base", "odd"))
    assert contracts.check(tmp_path) == [f"{base.relative_to(tmp_path)}: missing", f"{contracts.LOCK}: missing"]

    assert contracts.export(tmp_path) == [base, tmp_path / contracts.LOCK]
    assert contracts.check(tmp_path) == []

    base.write_text("edited")
    odd.touch()
    assert contracts.check(tmp_path) == [
        f"{base.relative_to(tmp_path)}: differs from its source",
        f"{odd.relative_to(tmp_path)}: nothing generates it",
    ]
    contracts.export(tmp_path)
    assert contracts.check(tmp_path) == []
    assert not odd.exists()
