"""Settings of a training run; the defaults are db3's (section 2.4, table 1) where it names a value."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

TARGETS = ("q_proj", "k_proj", "v_proj", "up_proj", "down_proj", "gate_proj")
# May differ between a run and its resumption: how long, how often and how fast, never what is learnt.
FREE = frozenset({"time_limit_s", "checkpoint_steps", "threads"})


class Recipe(BaseModel):
    """Settings of one run. All of them but `FREE` must be the same for a run to go on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    checkpoint_steps: int = Field(50, ge=1, le=1_000_000)
    # Seconds for everything; the learning rate then falls so that it ends there. 0 sets no limit.
    time_limit_s: float = Field(0.0, ge=0)
    threads: int = Field(2, ge=1, le=256)

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

    def fixed(self) -> dict[str, object]:
        """What must be the same for a run to go on."""
        return self.model_dump(mode="json", exclude=set(FREE))
