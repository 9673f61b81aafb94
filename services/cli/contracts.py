"""The contracts for clients in other languages: proto3 files from the models, OpenAPI from the applications.

The canonical proto3 JSON of each exported message is the JSON on the wire. A field of which the absence and the zero
mean different things (one that is required, or whose default is not zero) is `optional`, so that proto3 prints a zero
that was set and leaves out one that was not. Field numbers live in a lock file: a name keeps its number for ever, and
the number of a removed field is reserved.
"""

import importlib
import inspect
import json
import pkgutil
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

import proto
from proto.base import Contract
from services.cli.ending import wrong

PACKAGE = "cragmesh.v1"
PROTO_DIR = Path("proto", *PACKAGE.split("."))
OPENAPI_DIR = Path("proto", "openapi")
LOCK = PROTO_DIR / "numbers.json"
# The models themselves, for Python's client, which has nothing else of the mesh.
CLIENT_DIR = Path("clients", "python", "cragmesh_client", "contracts")
CLIENT_PACKAGE = "cragmesh_client.contracts"

# Service to the factory of its application, called without arguments.
APPS = {
    "classifier": "services.classifier.app:create_app",
    "gateway": "services.gateway.app:create_app",
    "kg": "services.kg.app:create_app",
    "reranker": "services.reranker.app:create_app",
    "retriever": "services.retriever.app:create_app",
    "searcher": "services.searcher.app:create_app",
}

SCALARS: dict[Any, str] = {bool: "bool", int: "int32", float: "double", str: "string", datetime: "string"}
# A value of any of these is what JSON calls one: proto3 has a well-known message for it, with a JSON form to match.
VALUES = {bool, int, float, str}
VALUE = "google.protobuf.Value"
VALUE_FILE = "google/protobuf/struct.proto"
INT32 = range(-(2**31), 2**31)
LINE = 120

Model = type[Contract]
# Message to field to number; a field that is gone keeps its entry.
Numbers = dict[str, dict[str, int]]


class ContractError(Exception):
    """A contract has no exact proto3 form, or a setting of an application is wrong."""


def export(root: Path) -> list[Path]:
    """Write all generated files below `root`, remove those that nothing generates any more, and return the written.

    Raises:
        ContractError: a model cannot be expressed, or a setting is wrong.
        ImportError: an application cannot be imported.
    """
    files = render(root)
    for path in _stale(root, files):
        path.unlink()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return [root / path for path in files]


def check(root: Path) -> list[str]:
    """Say, a line a file, where the files below `root` are not what `export` would write; empty when all are."""
    files = render(root)
    return [*drift(root, files), *(f"{path.relative_to(root)}: nothing generates it" for path in _stale(root, files))]


def drift(root: Path, files: dict[Path, str]) -> list[str]:
    """Say which of `files` are missing below `root`, or hold another text."""
    drifted = []
    for path, text in files.items():
        if not (root / path).is_file():
            drifted.append(f"{path}: missing")
        elif (root / path).read_text(encoding="utf-8") != text:
            drifted.append(f"{path}: differs from its source")
    return drifted


def render(root: Path) -> dict[Path, str]:
    """The text of every generated file by its path below `root`, where the field numbers in use are read."""
    openapi = {OPENAPI_DIR / f"{name}.json": render_openapi(name) for name in APPS}
    return render_protos(root) | openapi | render_client()


def render_client() -> dict[Path, str]:
    """The modules of `proto` under the name of the client's package."""
    sources = (Path(path) for path in proto.__path__)
    modules = sorted(path for folder in sources for path in folder.glob("*.py"))
    return {
        CLIENT_DIR / path.name: f"# Generated from proto/{path.name} by `make contracts`: edits are lost.\n"
        + path.read_text(encoding="utf-8").replace(f"from {proto.__name__}.", f"from {CLIENT_PACKAGE}.")
        for path in modules
    }


def render_openapi(name: str) -> str:
    """The OpenAPI document of one of `APPS`."""
    module, factory = APPS[name].split(":")
    try:
        app = getattr(importlib.import_module(module), factory)()
    except ValidationError as error:
        raise ContractError(wrong(error, "CRAGMESH_", str.upper)) from None
    return _json(app.openapi())


def render_protos(root: Path) -> dict[Path, str]:
    """The `.proto` files, and the lock with their field numbers."""
    modules = contract_models()
    owners = {model: name for name, models in modules.items() for model in models}
    numbers = _numbered(_locked(root), owners)
    files = {PROTO_DIR / f"{name}.proto": _File(name, owners, numbers).text() for name in modules}
    return files | {LOCK: _json(numbers)}


def contract_models() -> dict[str, list[Model]]:
    """The messages of each module of `proto`, in the order of its source."""
    names = sorted(module.name for module in pkgutil.iter_modules(proto.__path__))
    modules = {name: importlib.import_module(f"{proto.__name__}.{name}") for name in names}
    return {
        name: [
            item
            for item in vars(module).values()
            if inspect.isclass(item)
            and issubclass(item, Contract)
            and item is not Contract
            and item.__module__ == module.__name__
        ]
        for name, module in modules.items()
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _stale(root: Path, files: dict[Path, str]) -> list[Path]:
    places = ((PROTO_DIR, "*.proto"), (OPENAPI_DIR, "*.json"), (CLIENT_DIR, "*.py"))
    paths = {path for folder, pattern in places for path in (root / folder).glob(pattern)}
    return sorted(paths - {root / path for path in files})


def _locked(root: Path) -> Numbers:
    lock = root / LOCK
    if lock.is_file():
        numbers: Numbers = json.loads(lock.read_text(encoding="utf-8"))
        return numbers
    if any((root / PROTO_DIR).glob("*.proto")):
        raise ContractError(f"{LOCK} is missing: without it the fields of the existing messages would be renumbered")
    return {}


def _numbered(locked: Numbers, models: Iterable[Model]) -> Numbers:
    numbers = {message: dict(fields) for message, fields in locked.items()}
    for model in models:
        fields = numbers.setdefault(model.__name__, {})
        for field in model.model_fields:
            fields.setdefault(field, max(fields.values(), default=0) + 1)
    return numbers


@dataclass(frozen=True)
class _Type:
    """The proto3 type of an annotation, and what its values are held to, in words."""

    name: str
    label: str = ""
    limits: tuple[str, ...] = ()
    message: Model | None = None

    @property
    def plain_scalar(self) -> bool:
        """Whether proto3, left to itself, cannot tell an absent value from a zero."""
        return not self.label and self.message is None


def _type(annotation: Any, metadata: tuple[Any, ...]) -> _Type:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(args[0], (*args[1:], *metadata))
    if origin in (Union, types.UnionType):
        values = [arg for arg in args if arg is not types.NoneType]
        if len(values) == len(VALUES) and {_bare(arg) for arg in values} == VALUES:
            return _Type(VALUE, "singular", ("a text, a number or a truth value.",))
        if len(values) != 1:
            raise ContractError("a union has no proto3 JSON form")
        inner = _type(values[0], metadata)
        if inner.label:
            raise ContractError("proto3 cannot tell an absent list or map from an empty one")
        return _Type(inner.name, "optional", inner.limits, inner.message)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        item = _plain(args[0])
        limits = [*_size(metadata, "items"), *(f"Each: {limit}" for limit in item.limits)]
        return _Type(item.name, "repeated", tuple(limits), item.message)
    if origin is dict and _bare(args[0]) is str:
        value = _plain(args[1])
        limits = [*_size(metadata, "entries"), *(f"Each value: {limit}" for limit in value.limits)]
        return _Type(f"map<string, {value.name}>", "map", tuple(limits), value.message)
    if origin is Literal:
        if not all(isinstance(arg, str) for arg in args):
            raise ContractError("only literals of strings are exported")
        return _Type("string", limits=("one of " + ", ".join(f"`{arg}`" for arg in args) + ".",))
    if inspect.isclass(annotation) and issubclass(annotation, Contract):
        return _Type(annotation.__name__, message=annotation)
    if annotation in SCALARS:
        return _Type(SCALARS[annotation], limits=tuple(_scalar_limits(annotation, metadata)))
    raise ContractError(f"{annotation!r} has no proto3 form")


def _bare(annotation: Any) -> Any:
    return _bare(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def _plain(annotation: Any) -> _Type:
    item = _type(annotation, ())
    if item.label and item.name != VALUE:
        raise ContractError("a list or a map holds only messages and scalars that are not null")
    return item


def _scalar_limits(scalar: Any, metadata: tuple[Any, ...]) -> Iterator[str]:
    if scalar is str:
        yield from _size(metadata, "characters")
        if _constraint(metadata, "strip_whitespace"):
            yield "stripped of white space at its ends."
        if _constraint(metadata, "pattern"):
            yield f"matches `{_constraint(metadata, 'pattern')}`."
    elif scalar is datetime:
        examples = ", ".join(f"`{example}`" for example in _constraint(metadata, "examples") or ())
        yield f"a time, e.g. {examples}; written as RFC 3339." if examples else "a time as RFC 3339."
    elif scalar in (int, float):
        bounds = {name: _constraint(metadata, name) for name in ("gt", "ge", "le", "lt")}
        if scalar is int and any(bound is not None and bound not in INT32 for bound in bounds.values()):
            raise ContractError("a bound lies outside of int32")
        words = {"gt": "more than", "ge": "at least", "le": "at most", "lt": "less than"}
        limits = [f"{words[name]} {_number(bound)}" for name, bound in bounds.items() if bound is not None]
        if _constraint(metadata, "allow_inf_nan") is False and (bounds["ge"] is None or bounds["le"] is None):
            limits.append("finite")
        if limits:
            yield ", ".join(limits) + "."


def _size(metadata: tuple[Any, ...], unit: str) -> Iterator[str]:
    least, most = _constraint(metadata, "min_length"), _constraint(metadata, "max_length")
    if least and most:
        yield f"{least} to {most} {unit}."
    elif least or most:
        yield f"at {'least' if least else 'most'} {least or most} {unit}."


def _constraint(metadata: tuple[Any, ...], name: str) -> Any:
    for item in metadata:
        value = getattr(item, name, None)
        if value is None and isinstance(item, FieldInfo):
            value = _constraint(tuple(item.metadata), name)
        if value is not None:
            return value
    return None


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


class _File:
    """One `.proto` file: the messages of one module."""

    def __init__(self, name: str, owners: dict[Model, str], numbers: Numbers) -> None:
        self.name = name
        self.owners = owners
        self.numbers = numbers
        self.models = [model for model, owner in owners.items() if owner == name]
        self.imports: set[str] = set()

    def text(self) -> str:
        blocks = [*self._services(), *(self._message(model) for model in self.models)]
        imports = [f'import "{path}";' for path in sorted(self.imports)]
        head = [
            f"// Generated from proto/{self.name}.py by `make contracts`: edits are lost.",
            "",
            'syntax = "proto3";',
            "",
            f"package {PACKAGE};",
            *(["", *imports] if imports else []),
        ]
        return "\n".join([*head, *(line for block in blocks for line in ("", *block))]) + "\n"

    def _services(self) -> Iterator[list[str]]:
        modules = {inspect.getmodule(model) for model in self.models}
        routes: Mapping[str, tuple[str, str, str]] = next(
            (module.ROUTES for module in modules if module is not None and hasattr(module, "ROUTES")), {}
        )
        if routes:
            name = self.name.capitalize()
            lines = [f"service {name}{'Service' if name in self.numbers else ''} {{"]
            for path, (task, request, response) in routes.items():
                lines += [f"  // `POST {path}`, both ways as JSON.", f"  rpc {task}({request}) returns ({response});"]
            yield [*lines, "}"]
            return
        names = [model.__name__ for model in self.models]
        for name in names:
            task = name.removesuffix("Request")
            if task != name and f"{task}Response" in names:
                route = f"// `POST /{task.lower()}`, both ways as JSON."
                rpc = f"rpc {task}({name}) returns ({task}Response);"
                yield [f"service {task} {{", f"  {route}", f"  {rpc}", "}"]

    def _message(self, model: Model) -> list[str]:
        numbers = self.numbers[model.__name__]
        removed = {name: number for name, number in numbers.items() if name not in model.model_fields}
        lines = [*_comment(inspect.cleandoc(model.__doc__ or ""), ""), f"message {model.__name__} {{"]
        if removed:
            names = ", ".join(f'"{name}"' for name in sorted(removed))
            lines += [f"  reserved {', '.join(map(str, sorted(removed.values())))};", f"  reserved {names};"]
        for name, field in model.model_fields.items():
            try:
                lines += self._field(name, field, numbers[name])
            except ContractError as error:
                raise ContractError(f"{model.__name__}.{name}: {error}") from error
        return [*lines, "}"]

    def _field(self, name: str, field: FieldInfo, number: int) -> list[str]:
        kind = _type(field.annotation, tuple(field.metadata))
        if kind.message and self.owners[kind.message] != self.name:
            self.imports.add(f"{PACKAGE.replace('.', '/')}/{self.owners[kind.message]}.proto")
        if VALUE in kind.name:
            self.imports.add(VALUE_FILE)
        label = "optional" if kind.plain_scalar and (field.is_required() or _default(field)) else kind.label
        # The mapping would call it lowerCamelCase.
        option = f' [json_name = "{name}"]' if "_" in name else ""
        prefix = f"{label} " if label in ("optional", "repeated") else ""
        return [*_comment(" ".join(_sentences(kind, field)), "  "), f"  {prefix}{kind.name} {name} = {number}{option};"]


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def _sentences(kind: _Type, field: FieldInfo) -> Iterator[str]:
    if field.description:
        yield field.description
    for limit in kind.limits:
        yield limit[0].upper() + limit[1:]
    # Lists and maps say so by their least size: proto3 has no other way.
    if field.is_required() and kind.label in ("", "singular"):
        yield "Required."
    elif kind.plain_scalar and (default := _default(field)):
        yield f"Default: {_number(default) if isinstance(default, float) else json.dumps(default)}."


def _comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}// "
    return [
        line.rstrip()
        for paragraph in text.splitlines()
        for line in textwrap.wrap(
            paragraph,
            LINE,
            initial_indent=prefix,
            subsequent_indent=prefix,
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [prefix]
    ]
