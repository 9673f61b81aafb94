"""Examples as tokens: the prompt as the server renders it, then the reply and the mark that ends a turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.trainer.dataset import Example
from lab.trainer.errors import BadModel
from lab.trainer.run import OnProgress, Progress

# Prompts that are rendered and tokenized between two calls of `on_progress`.
PIECE = 512


@dataclass(frozen=True, slots=True)
class Encoded:
    """One example: token ids of its prompt and of its reply, the end mark included."""

    example: Example
    prompt: tuple[int, ...]
    completion: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)


@dataclass(frozen=True, slots=True)
class Encoding:
    """The examples that fit, and how many were left out for the length of their prompt or of their reply."""

    kept: list[Encoded]
    long_prompts: int
    long_completions: int


def encode(
    examples: Sequence[Example],
    tokenizer: Any,
    *,
    max_prompt_tokens: int,
    max_completion_tokens: int,
    on_progress: OnProgress = lambda _: None,
) -> Encoding:
    """Tokens of all examples, in order.

    The prompt and the reply are tokenized apart, as they are when a model is asked. None is cut: a document without its
    end may have lost what the answer rests on, and the model would learn to make it up.

    Args:
        tokenizer: a fast tokenizer of transformers with a chat template and an end mark.

    Raises:
        BadModel: the tokenizer has no chat template or no end mark.
    """
    if not tokenizer.chat_template:
        raise BadModel("the base model's tokenizer has no chat template: train an instruction-tuned model")
    end = tokenizer.eos_token_id
    if end is None:
        raise BadModel("the base model's tokenizer has no end mark")
    kept: list[Encoded] = []
    long_prompts = long_completions = 0
    for start in range(0, len(examples), PIECE):
        piece = examples[start : start + PIECE]
        rendered = [
            tokenizer.apply_chat_template(
                [{"role": turn.role, "content": turn.content} for turn in example.messages],
                add_generation_prompt=True,
                tokenize=False,
            )
            for example in piece
        ]
        prompts = tokenizer(rendered, add_special_tokens=False)["input_ids"]
        completions = tokenizer([example.completion for example in piece], add_special_tokens=False)["input_ids"]
        for example, prompt, completion in zip(piece, prompts, completions, strict=True):
            if len(prompt) > max_prompt_tokens:
                long_prompts += 1
            elif len(completion) + 1 > max_completion_tokens:
                long_completions += 1
            else:
                kept.append(Encoded(example, tuple(prompt), (*completion, end)))
        on_progress(Progress("encoding", start + len(piece), len(examples)))
    return Encoding(kept, long_prompts, long_completions)
