"""Checkpoints: the whole state of a run, to go on from; the last two are kept.

A checkpoint is a folder with `state.json` and `tensors.safetensors`. No pickle is read: a folder from elsewhere can be
wrong, but it cannot run anything.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import safetensors
import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from torch import Tensor

from lab.trainer import files
from lab.trainer.errors import BadCheckpoint, faults

KEPT = 2
STATE, TENSORS = "state.json", "tensors.safetensors"

# Why a run ended; it has not when empty.
Stop = Literal["", "epochs", "time", "patience"]

_NAME = re.compile(r"step-(\d{8})")


class Point(BaseModel):
    """One measurement, or the training loss at one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=0)
    epoch: float = Field(ge=0)
    loss: float | None = None
    rate: float | None = None
    validation_loss: float | None = None
    score: dict[str, float] | None = None


class State(BaseModel):
    """The state of a run, which changes as it goes on.

    Attributes:
        fixed: what must be the same for the run to go on: the recipe, the data's checksum, the base model.
        step: steps done.
        spent_s: seconds since the run began, in all processes together.
        begun_s: of those, seconds before the first step.
        measure_s: seconds that one whole measurement took, which the end must leave time for.
        tokens: computed so far in training, padding included.
        best_step: the step of the adapter that is kept as the best; its tensors lie in the checkpoint too.
        waited: measurements since the best validation loss.
        number_format: the base model's, in which the run began.
        scaler: of the loss in fp16; empty in other formats.
        overflows: steps in a row, up to now, whose gradients overflowed.
    """

    model_config = ConfigDict(extra="forbid")

    fixed: dict[str, JsonValue]
    step: int = Field(0, ge=0)
    spent_s: float = Field(0.0, ge=0)
    begun_s: float = Field(0.0, ge=0)
    measure_s: float = Field(0.0, ge=0)
    tokens: int = Field(0, ge=0)
    best_step: int = Field(-1, ge=-1)
    waited: int = Field(0, ge=0)
    number_format: str = ""
    scaler: dict[str, JsonValue] = {}
    overflows: int = Field(0, ge=0)
    history: list[Point] = []
    stopped: Stop = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state with its tensors: `adapter.*`, `best.*`, `optimizer.*`, `rng.*`."""

    state: State
    tensors: dict[str, Tensor]

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part, under their own names."""
        return {key[len(name) + 1 :]: one for key, one in self.tensors.items() if key.startswith(f"{name}.")}


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove all but the last `KEPT`.

    Raises:
        WriteFailed: the disk took no more; the checkpoints before it stay as they were.
    """
    state = checkpoint.state.model_dump_json(indent=1).encode() + b"\n"
    content = {TENSORS: safetensors.torch.save(checkpoint.tensors), STATE: state}
    files.write_folder(folder / f"step-{checkpoint.state.step:08d}", content)
    for old in checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def checkpoints(folder: Path) -> list[Path]:
    """The whole checkpoints of a folder, the oldest first."""
    named = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(path for path in named if (path / STATE).is_file() and (path / TENSORS).is_file())


def last(folder: Path, on_bad: Callable[[str], None] = lambda _: None) -> Checkpoint:
    """The newest checkpoint that can be read; one that cannot is named and passed over.

    Raises:
        BadCheckpoint: there is none.
    """
    for path in reversed(checkpoints(folder)):
        try:
            return _read(path)
        except BadCheckpoint as error:
            on_bad(str(error))
    raise BadCheckpoint(f"{folder}: there is no checkpoint to go on from")


def _read(path: Path) -> Checkpoint:
    try:
        state = State.model_validate_json((path / STATE).read_bytes())
        tensors = safetensors.torch.load_file(path / TENSORS)
    except ValidationError as error:
        raise BadCheckpoint(f"{path / STATE}: {faults(error)}") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise BadCheckpoint(f"{path}: {error}") from error
    return Checkpoint(state, tensors)


def check(state: State, fixed: dict[str, JsonValue]) -> None:
    """Refuse a checkpoint of another training.

    Raises:
        BadCheckpoint: the training is another; the message names what differs.
    """
    # Through JSON, so that a tuple is what it was read back as.
    expected = json.loads(json.dumps(fixed))
    keys = sorted({*expected, *state.fixed})
    differing = [key for key in keys if expected.get(key) != state.fixed.get(key)]
    if differing:
        raise BadCheckpoint(
            f"the checkpoint of step {state.step} is of a training with another {', '.join(differing)}: "
            "choose another folder, or give what that training had"
        )


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """AdamW's moments and step counts, as tensors of the part `optimizer`.

    Args:
        names: of the parameters, in the optimiser's order.
    """
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{names[index]}|{key}": torch.as_tensor(value).detach().to("cpu", copy=True).contiguous()
        for index, values in state.items()
        for key, value in values.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Restore the tensors of `optimizer_tensors`, without the part's name.

    Raises:
        BadCheckpoint: it is of other parameters.
    """
    places = {name: index for index, name in enumerate(names)}
    state: dict[int, dict[str, Tensor]] = {}
    for full, tensor in tensors.items():
        name, _, key = full.rpartition("|")
        if name not in places:
            raise BadCheckpoint(f"the optimiser's state has {name}, which is not trained here")
        state.setdefault(places[name], {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
