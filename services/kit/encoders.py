"""Encoders by name: definitions as data, models loaded on first use and unloaded when memory is short."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from services.kit.encoder import Encoder, EncoderUsage
from services.kit.faults import faults_of, in_words
from services.kit.precision import BYTES, DtypeSetting, Precision, choose_precision
from services.kit.telemetry import log

MIB = 1024 * 1024


class EncoderFailure(Exception):
    """An encoder cannot be loaded; the message names it and the reason."""


class UnknownEncoder(EncoderFailure):
    """No encoder of that name is defined."""


class EncoderDefinition(EncoderUsage):
    """One entry of `encoders.yaml`, where the fields are explained."""

    model: str = ""
    precision: DtypeSetting = "auto"
    parameters: int = Field(0, ge=0)


_DEFINITIONS = TypeAdapter(dict[Annotated[str, BeforeValidator(str)], EncoderDefinition])


def definitions(own: Path | None = None) -> dict[str, EncoderDefinition]:
    """The definitions that ship, updated by those of a file of one's own.

    Raises:
        ValueError: a file cannot be read, or holds an invalid definition.
    """
    shipped = resources.files("services.kit").joinpath("encoders.yaml").read_text(encoding="utf-8")
    encoders = _parse(shipped, "encoders.yaml")
    if own is not None:
        try:
            encoders |= _parse(own.read_text(encoding="utf-8"), str(own))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{own} cannot be read: {error}") from error
    return encoders


def _parse(text: str, name: str) -> dict[str, EncoderDefinition]:
    try:
        return _DEFINITIONS.validate_python(yaml.safe_load(text) or {})
    except yaml.YAMLError as error:
        raise ValueError(f"{name} is not YAML: {error}") from error
    except ValidationError as error:
        raise ValueError(f"{name}: {in_words(faults_of(error))}") from error


class EncoderPool:
    """The encoders in memory, within a bound of their weights; safe to use from several threads.

    Args:
        defined: the encoders that can be loaded, by name.
        max_bytes: of all weights together; the encoder loaded last stays even beside pinned ones that leave too little.
        choose: the precision of a model, by its definition's wish and its place.
        make: makes an unloaded encoder.
    """

    def __init__(
        self,
        defined: Mapping[str, EncoderDefinition],
        *,
        max_bytes: int,
        choose: Callable[[DtypeSetting, str], Precision] = lambda dtype, model: choose_precision(dtype, model=model),
        make: Callable[..., Encoder] = Encoder,
    ) -> None:
        self._defined = defined
        self._max_bytes = max_bytes
        self._choose = choose
        self._make = make
        self._loaded: OrderedDict[str, Encoder] = OrderedDict()
        self._pinned: dict[str, Encoder] = {}
        self._lock = threading.Lock()
        # A lock of its own, so that a loaded encoder is found while another one loads.
        self._loading = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Every name that `get` takes."""
        return sorted({*self._defined, *self._pinned})

    def pin(self, name: str, encoder: Encoder) -> None:
        """Share an encoder that the caller has loaded and keeps."""
        with self._lock:
            self._pinned[name] = encoder

    def get(self, name: str) -> Encoder:
        """An encoder, loaded on first use; the one unused longest makes room.

        Raises:
            UnknownEncoder: there is no definition of that name.
            EncoderFailure: its model cannot be loaded, or does not fit.
        """
        if (encoder := self.find(name)) is not None:
            return encoder
        if name not in self._defined:
            raise UnknownEncoder(f"no encoder is named {name!r}; there are {', '.join(self.names)}")
        with self._loading:
            return self.find(name) or self._load(name, self._defined[name])

    def find(self, name: str) -> Encoder | None:
        """An encoder that is in memory; never waits for one that is being loaded."""
        with self._lock:
            if name in self._pinned:
                return self._pinned[name]
            if name in self._loaded:
                self._loaded.move_to_end(name)
            return self._loaded.get(name)

    def _load(self, name: str, definition: EncoderDefinition) -> Encoder:
        try:
            precision = self._choose(definition.precision, definition.model)
        except ValueError as error:
            raise EncoderFailure(f"the encoder {name} cannot be loaded: {_one_line(error)}") from error
        expected = definition.parameters * BYTES[precision.dtype]
        if expected > self._max_bytes:
            raise EncoderFailure(
                f"the encoder {name} needs {expected // MIB:,} MiB in {precision.dtype}, of the "
                f"{self._max_bytes // MIB:,} MiB that all encoders may take"
            )
        self._make_room(expected)
        encoder = self._make(definition.model, precision=precision, usage=definition)
        try:
            encoder.load()
        # A hub's client, tokenizers and torch raise errors of any type; only this encoder's searches are to fail.
        except Exception as error:
            raise EncoderFailure(f"the encoder {name} cannot be loaded: {_one_line(error)}") from error
        encoder.name = name
        self._make_room(encoder.nbytes)
        with self._lock:
            self._loaded[name] = encoder
        log.info("encoder loaded", encoder=name, mib=encoder.nbytes // MIB, precision=precision.dtype)
        return encoder

    def _make_room(self, nbytes: int) -> None:
        with self._lock:
            while self._loaded and nbytes + sum(other.nbytes for other in self._loaded.values()) > self._max_bytes:
                name, _ = self._loaded.popitem(last=False)
                log.info("encoder let go", encoder=name)


def named(model: str, defined: Mapping[str, EncoderDefinition]) -> tuple[str, EncoderUsage]:
    """Name and usage of an encoder by a setting: a folder, a hub name, or empty.

    A folder goes by its last part, so that a copy of a defined model has its definition's usage.
    """
    name = next((name for name, definition in defined.items() if definition.model == model), Path(model).name)
    return name, defined.get(name, EncoderUsage())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
