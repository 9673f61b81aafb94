"""Settings of training runs: of an adapter's, and of the reader's."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

TARGETS = ("q_proj", "k_proj", "v_proj", "up_proj", "down_proj", "gate_proj")


class _Free(BaseModel):
    """What may differ between a run and its resumption: how long, how often and how fast, never what is learnt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint_steps: int = Field(50, ge=1, le=1_000_000)
    # Seconds for everything; the learning rate then falls so that it ends there. 0 sets no limit.
    time_limit_s: float = Field(0.0, ge=0)
    threads: int = Field(2, ge=1, le=256)

    def fixed(self) -> dict[str, object]:
        """What must be the same for a run to go on."""
        return self.model_dump(mode="json", exclude=set(_Free.model_fields))


class Recipe(_Free):
    """Of an adapter; the defaults are db3's (section 2.4, table 1) where it names a value."""

    rank: int = Field(8, ge=1, le=256)
    alpha: int = Field(16, ge=1, le=1_024)
    dropout: float = Field(0.1, ge=0, lt=1)
    targets: tuple[str, ...] = Field(TARGETS, min_length=1)
    learning_rate: float = Field(2e-4, gt=0, le=1)
    # Share of the steps in which the learning rate rises; after them it falls as a cosine, to nothing.
    warm_up: float = Field(0.1, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0, le=1)
    max_grad_norm: float = Field(0.3, gt=0, le=100)
    # Batches whose gradients make one step. A batch holds as many examples as fit into `max_batch_tokens`.
    accumulation: int = Field(4, ge=1, le=256)
    epochs: float = Field(2.0, gt=0, le=100)
    # Bounds memory: tokens of one batch, padding included. On two cores more is no faster.
    max_batch_tokens: int = Field(1_024, ge=64, le=262_144)
    # A longer prompt is left out, and counted: cut, it might lose the very text that its answer rests on.
    max_prompt_tokens: int = Field(896, ge=32, le=131_072)
    # Longer replies are left out too.
    max_completion_tokens: int = Field(128, ge=4, le=8_192)
    # Whole groups are kept back, about this share of the examples; of those so many are measured.
    validation_share: float = Field(0.05, gt=0, le=0.5)
    validation_examples: int = Field(400, ge=1, le=100_000)
    # Of those again so many are answered greedily at the end of each epoch, which takes longest.
    score_examples: int = Field(160, ge=1, le=100_000)
    # Steps between two measurements of the validation loss beside those at the ends of epochs; 0 makes none.
    validation_steps: int = Field(100, ge=0, le=1_000_000)
    # So many measurements without a better validation loss end the run; 0 goes on to the last step.
    patience: int = Field(5, ge=0, le=1_000)
    seed: int = Field(0, ge=0, lt=2**32)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_prompt_tokens + self.max_completion_tokens > self.max_batch_tokens:
            raise ValueError("max_batch_tokens must hold one example: max_prompt_tokens + max_completion_tokens")
        return self

    @classmethod
    def reading(cls, tokens: int) -> dict[str, int]:
        """The lengths for prompts of so many tokens; empty where the defaults hold them."""
        lengths = cls.model_fields
        if tokens <= int(lengths["max_prompt_tokens"].default):
            return {}
        return {"max_prompt_tokens": tokens, "max_batch_tokens": tokens + int(lengths["max_completion_tokens"].default)}


class ReaderRecipe(_Free):
    """Of the extractive reader."""

    rank: int = Field(16, ge=1, le=256)
    alpha: int = Field(32, ge=1, le=1_024)
    learning_rate: float = Field(1e-3, gt=0, le=1)
    # The head begins at nothing and learns faster than what it reads.
    head_rate: float = Field(3e-3, gt=0, le=1)
    warm_up: float = Field(0.05, ge=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0, le=100)
    batch: int = Field(16, ge=1, le=4_096)
    epochs: float = Field(1.0, gt=0, le=100)
    max_tokens: int = Field(256, ge=64, le=384)
    overlap: int = Field(64, ge=0, le=128)
    # Of the answerable questions, so many are asked of another passage too.
    distractors: float = Field(0.4, ge=0, le=1)
    # A title is what only some callers know.
    titles: float = Field(0.7, ge=0, le=1)
    held_out_share: float = Field(0.05, gt=0, le=0.5)
    held_out: int = Field(1_000, ge=2, le=100_000)
    seed: int = Field(0, ge=0)
    checkpoint_steps: int = Field(200, ge=1)
    threads: int = Field(0, ge=0, le=1_024)
