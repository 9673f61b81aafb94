"""What stops a training. The last checkpoint stays whole, and the same command goes on from there.

TrainerError
  ├── BadDataset       a file of examples cannot be read, or a line of it is none
  ├── BadLabels        a run cannot be made into examples
  ├── BadModel         the base model cannot be read, or is not the one that an adapter is for
  ├── BadTarget        what would be replaced is no adapter, or another process writes it
  ├── BadCheckpoint    there is none to go on from, or it is of another training
  ├── Diverged         the loss is no number any more
  └── WriteFailed      the disk took no more
"""

from pydantic import ValidationError


class TrainerError(Exception):
    """The message says what happened, and what to do about it where that is known."""


class BadDataset(TrainerError):
    pass


class BadLabels(TrainerError):
    pass


class BadModel(TrainerError):
    pass


class BadTarget(TrainerError):
    pass


class BadCheckpoint(TrainerError):
    pass


class Diverged(TrainerError):
    pass


class WriteFailed(TrainerError):
    pass


MAX_NAMED = 3


def faults(error: ValidationError) -> str:
    """The first fields that are wrong, and why; never what they hold."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(map(str, item['loc'])) or 'line'}: {item['msg']}" for item in errors[:MAX_NAMED]]
    return "; ".join([*named, *([f"and {len(errors) - MAX_NAMED} more"] if len(errors) > MAX_NAMED else [])])
