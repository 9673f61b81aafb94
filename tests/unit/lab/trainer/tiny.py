"""A model of a few thousand parameters with a tokenizer, made here, and questions that it can learn."""

import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lab.trainer.dataset import Example, Turn, write
from lab.trainer.recipe import Recipe

NAME = "tests/tiny"
COLOURS = ("red", "green", "blue", "black")
THINGS = tuple(f"{shape}{number}" for shape in ("cube", "ball", "cone", "ring", "disc") for number in range(8))
TEMPLATE = (
    "{% for message in messages %}<|start|> {{ message.role }} {{ message.content }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|start|> assistant {% endif %}"
)
OTHERS = "is what colour the system user assistant i don't know invalid"
SYSTEM = "answer in one word from the line"


def save_model(folder: Path, *, hidden: int = 32, seed: int = 0) -> Path:
    """Write a random Llama of two layers, and a tokenizer of whole words."""
    words = [*SYSTEM.split(), *COLOURS, *THINGS, *OTHERS.split()]
    marks = ["<|unk|>", "<|start|>", "<|end|>"]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*marks, *words]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unk|>"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks_by_use = {"unk_token": marks[0], "eos_token": marks[2], "pad_token": marks[2]}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks_by_use)  # type: ignore[no-untyped-call]
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        eos_token_id=vocabulary["<|end|>"],
        pad_token_id=vocabulary["<|end|>"],
        bos_token_id=vocabulary["<|start|>"],
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def examples(count: int, *, seed: int = 0) -> list[Example]:
    """Things with colours, one of which is asked about; a third of the questions are about one that is not there."""
    chooser = random.Random(seed)
    made = []
    for number in range(count):
        things = chooser.sample(THINGS, chooser.randint(2, 6))
        colours = [chooser.choice(COLOURS) for _ in things[1:]]
        facts = " ".join(f"{thing} is {colour}" for thing, colour in zip(things[1:], colours, strict=True))
        known = chooser.random() > 0.33
        question = f"what colour is the {things[1] if known else things[0]}"
        made.append(
            Example(
                id=f"{seed}-{number}",
                task="answer",
                messages=[Turn(role="system", content=SYSTEM), Turn(role="user", content=f"{facts} {question}")],
                completion=colours[0] if known else "i don't know",
                domain="open",
                kind="answer" if known else "unknown",
                question_type="simple",
                source="tests",
                query=f"{number} {question}",
            )
        )
    return made


def recipe(**given: object) -> Recipe:
    """Small steps of a small run."""
    small = {
        "rank": 4, "learning_rate": 1e-2, "accumulation": 2, "epochs": 1, "max_batch_tokens": 160,
        "max_prompt_tokens": 96, "max_completion_tokens": 16, "validation_share": 0.2, "score_examples": 8,
        "validation_steps": 0, "checkpoint_steps": 3, "threads": 1,
    }  # fmt: skip
    return Recipe.model_validate(small | given)


def save_data(path: Path, count: int = 120) -> Path:
    write(path, examples(count))
    return path
