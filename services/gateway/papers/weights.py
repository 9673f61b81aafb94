"""Weights of the ensemble as data: source to form to weight, written by `cragmesh papers tune`.

A source is an encoder's name or `bm25`; `*` stands for encoders that are not named, `rescore` for the re-scoring model,
whichever it is.
"""

import math
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

ANY_ENCODER = "*"
RESCORER = "rescore"
SHIPPED = "data/papers/default.json"

Weight = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


class Weights(BaseModel):
    """The file's contents; `normalise`, of which files may tell, has one value, and `tuned_on` is for the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    normalise: Literal["minmax"] = "minmax"
    weights: dict[str, dict[str, Weight]] = Field(default_factory=dict, max_length=256)
    tuned_on: str = ""

    def of(self, source: str, form: str, role: str = "retrieval") -> float:
        """The weight of a list; without any weights all lists count alike."""
        if not self.weights:
            return 1.0
        row = self.weights.get(RESCORER if role == RESCORER else source, self.weights.get(ANY_ENCODER, {}))
        return row.get(form, 0.0)

    def counts(self, *forms: str) -> bool:
        """Whether a list of any of these forms may have a weight."""
        return not self.weights or any(row.get(form, 0.0) > 0 for row in self.weights.values() for form in forms)

    @classmethod
    def read(cls, path: Path | None = None) -> "Weights":
        """The weights of a file; the shipped ones when None.

        Raises:
            ValueError: there is no such file, or it holds no usable weights.
        """
        try:
            text = path.read_text("utf-8") if path else files("services.gateway").joinpath(SHIPPED).read_text("utf-8")
            weights = cls.model_validate_json(text)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"weights of /papers cannot be read: {path or SHIPPED}: {error}") from error
        except ValidationError as error:
            raise ValueError(f"no weights of /papers: {path or SHIPPED}: {error}") from error
        if weights.weights and math.fsum(weight for row in weights.weights.values() for weight in row.values()) <= 0:
            raise ValueError(f"weights of /papers are all zero: {path or SHIPPED}")
        return weights


# For choosing what is fed back and re-scored: tuned weights there would change what they were tuned on.
EQUAL = Weights()
