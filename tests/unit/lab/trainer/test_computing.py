"""What is computed faster must be the same: shared prefixes against separate rows, our LoRA against peft's."""

from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft.tuners.lora import Linear
from torch import Tensor
from torch.nn.functional import cross_entropy

from lab.trainer.attention import sharing
from lab.trainer.batches import Batch, collate, common_prefix, epoch_batches, packed
from lab.trainer.encode import Encoded, encode
from lab.trainer.errors import BadModel
from lab.trainer.lora import MaskPool
from lab.trainer.measure import SPARE_TOKENS, batch_loss, replies
from lab.trainer.model import Base, Learner, adapt, weights
from tests.unit.lab.trainer.tiny import examples, recipe


def learner_of(base: Base, **given: object) -> Learner:
    learner = adapt(base, recipe(**given))
    with torch.no_grad():
        # B begins as nothing, and nothing would be the same however it is computed.
        for parameter in learner.parameters.values():
            parameter.normal_(std=0.1, generator=torch.Generator().manual_seed(parameter.numel()))
    return learner


def items_of(base: Base, count: int, seed: int = 0) -> list[Encoded]:
    return encode(examples(count, seed=seed), base.tokenizer, max_prompt_tokens=96, max_completion_tokens=16).kept


def plain_loss(learner: Learner, items: list[Encoded]) -> Tensor:
    """The same loss by the model's own forward pass, one example at a time."""
    total = torch.zeros(())
    for item in items:
        tokens = torch.tensor([[*item.prompt, *item.completion]])
        values = learner.adapted(input_ids=tokens).logits[0, len(item.prompt) - 1 : -1]
        total = total + cross_entropy(values.float(), torch.tensor(item.completion))
    return total


def gradients(learner: Learner, loss: Tensor) -> dict[str, Tensor]:
    learner.adapted.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    named = learner.adapted.named_parameters()
    return {name: parameter.grad.clone() for name, parameter in named if parameter.grad is not None}


def test_a_shared_prefix_changes_neither_loss_nor_gradients(base: Base) -> None:
    learner = learner_of(base, dropout=0.0)
    learner.adapted.train()
    items = items_of(base, 7)
    batch = collate(items)
    assert batch.prefix >= 8
    with sharing(learner.plain):
        loss = batch_loss(learner, batch)
    shared = gradients(learner, loss)
    alone = plain_loss(learner, items)
    separate = gradients(learner, alone)
    assert loss.item() == pytest.approx(alone.item(), rel=1e-4)
    assert shared.keys() == separate.keys()
    for name, gradient in separate.items():
        assert torch.allclose(shared[name], gradient, atol=1e-4, rtol=1e-3), name


def test_without_a_shared_prefix_rows_stand_alone(base: Base) -> None:
    learner = learner_of(base, dropout=0.0)
    learner.adapted.eval()
    first, second = items_of(base, 2)
    second = Encoded(second.example, second.prompt[3:], second.completion)
    with torch.no_grad(), sharing(learner.plain):
        batch = collate([first, second])
        together = batch_loss(learner, batch)
    assert batch.prefix == common_prefix([first, second])
    with torch.no_grad():
        assert together.item() == pytest.approx(plain_loss(learner, [first, second]).item(), rel=1e-4)


def test_long_rows_by_torchs_kernel_agree_with_dense_ones(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of(base, dropout=0.0)
    learner.adapted.eval()
    batch = collate(items_of(base, 5))
    with torch.no_grad(), sharing(learner.plain):
        dense = batch_loss(learner, batch).item()
        monkeypatch.setattr("lab.trainer.attention.MAX_DENSE_KEYS", 1)
        assert batch_loss(learner, batch).item() == pytest.approx(dense, rel=1e-4)


def test_our_lora_is_pefts(base: Base) -> None:
    learner = learner_of(base, dropout=0.0)
    learner.adapted.train()
    items = items_of(base, 3)
    ours = gradients(learner, plain_loss(learner, items))
    for layer in adapted_layers(learner):
        del layer.forward
    theirs = gradients(learner, plain_loss(learner, items))
    assert ours.keys() == theirs.keys()
    assert any(gradient.abs().max() > 1e-3 for gradient in theirs.values())
    for name, gradient in theirs.items():
        assert torch.allclose(ours[name], gradient, atol=1e-5, rtol=1e-4), name


def adapted_layers(learner: Learner) -> list[Linear]:
    return [module for module in learner.adapted.modules() if isinstance(module, Linear)]


def test_dropout_scales_what_it_keeps_and_is_off_when_measuring(base: Base) -> None:
    learner = learner_of(base, dropout=0.5)
    layer = adapted_layers(learner)[0]
    assert learner.masks is not None
    learner.masks.draw()
    inputs = torch.randn(400, int(layer.in_features or 0), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        learner.adapted.eval()
        whole = layer(inputs)
        assert torch.equal(whole, layer(inputs))
        learner.adapted.train()
        dropped = [layer(inputs) for _ in range(200)]
        assert not torch.equal(dropped[0], dropped[1])
        # Dropout changes no expectation.
        mean = torch.stack(dropped).mean(0)
        change = (whole - layer.get_base_layer()(inputs)).abs().mean()
        assert (mean - whole).abs().mean() < 0.15 * change


def test_masks_repeat_with_the_generator_and_never_run_out() -> None:
    pool = MaskPool(0.25, torch.float32, torch.device("cpu"))
    windows = []
    for _ in range(2):
        torch.manual_seed(5)
        pool.draw()
        windows.append(pool.window(1000).clone())
    assert torch.equal(*windows)
    kept = (windows[0] != 0).float().mean()
    assert kept == pytest.approx(0.75, abs=0.06)
    assert sorted(set(windows[0].tolist())) == pytest.approx([0.0, 1 / 0.75])
    assert pool.window(5_000_000).numel() == 5_000_000


def test_a_new_or_a_disabled_adapter_is_the_base_model(base: Base) -> None:
    tokens = torch.tensor([items_of(base, 1)[0].prompt])
    with torch.no_grad():
        before = base.model(input_ids=tokens).logits.clone()
        learner = adapt(base, recipe())
        learner.adapted.eval()
        assert torch.allclose(learner.adapted(input_ids=tokens).logits, before, atol=1e-5)
        for parameter in learner.parameters.values():
            parameter.fill_(0.1)
        assert not torch.allclose(learner.adapted(input_ids=tokens).logits, before)
        with learner.adapted.disable_adapter():
            assert torch.allclose(learner.adapted(input_ids=tokens).logits, before, atol=1e-5)
    assert all(tensor.dtype == torch.float32 for tensor in weights(learner).values())


def test_an_adapter_for_layers_that_are_not_there_is_refused(base: Base) -> None:
    with pytest.raises(BadModel, match=r"no layers named c_attn; its linear layers are .*q_proj"):
        adapt(base, recipe(targets=("c_attn", "q_proj")))


def test_replies_are_what_the_model_says_to_each_prompt_alone(base: Base) -> None:
    learner = learner_of(base, dropout=0.0)
    items = items_of(base, 3)
    together = replies(learner, items, max_tokens=64)
    alone = [replies(learner, [item], max_tokens=64)[0] for item in items]
    # The longest that may be said depends on the set; what both say must agree.
    assert all(one.startswith(two) or two.startswith(one) for one, two in zip(together, alone, strict=True))
    assert any(together)


def test_replies_are_measured_within_the_bound_of_a_batch(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, items = learner_of(base, dropout=0.0), items_of(base, 5)
    most = max(len(item.completion) for item in items) + SPARE_TOKENS
    real: Any = learner.adapted.generate
    seen: list[tuple[int, int]] = []

    def watched(*, input_ids: torch.Tensor, **given: Any) -> Any:
        seen.append((len(input_ids), input_ids.shape[1] + given["max_new_tokens"]))
        return real(input_ids=input_ids, **given)

    monkeypatch.setattr(learner.adapted, "generate", watched)
    for max_tokens in (160, 1):
        seen.clear()
        replies(learner, items, max_tokens=max_tokens)
        assert sum(rows for rows, _ in seen) == len(items)
        assert all(rows * length <= max_tokens or rows == 1 for rows, length in seen)
        assert all(length >= most for _, length in seen)
    assert [rows for rows, _ in seen] == [1] * len(items)


def encoded(prompt: tuple[int, ...], completion: tuple[int, ...]) -> Encoded:
    return Encoded(examples(1)[0], prompt, completion)


TOKENS = st.lists(st.integers(0, 5), min_size=1, max_size=9)


@given(
    prefix=st.lists(st.integers(0, 5), max_size=6),
    rests=st.lists(st.tuples(TOKENS, st.lists(st.integers(6, 9), min_size=1)), min_size=1, max_size=6),
)
@settings(max_examples=30)
def test_a_batch_asks_for_every_token_of_every_reply_and_for_no_other(
    prefix: list[int], rests: list[tuple[list[int], list[int]]]
) -> None:
    items = [encoded((*prefix, *prompt), tuple(completion)) for prompt, completion in rests]
    batch = collate(items)
    assert batch.targets.tolist() == [token for item in items for token in item.completion]
    assert batch.weights.sum().item() == pytest.approx(len(items))
    length = (batch.size - batch.prefix) // batch.rows
    for row, item in enumerate(items):
        assert read_row(batch, row, length)[: len(item)] == [*item.prompt, *item.completion]
    # Each place is followed, in its own row, by its target; the last of a shared prefix is in no row's rest.
    for place, target in zip(batch.answers.tolist(), batch.targets.tolist(), strict=True):
        assert batch.tokens[0, place + 1].item() == target
        assert batch.positions[0, place + 1] == batch.positions[0, place] + 1


def read_row(batch: Batch, row: int, length: int) -> list[int]:
    start = batch.prefix + row * length
    tokens = cast(list[int], batch.tokens[0].tolist())
    return [*tokens[: batch.prefix], *tokens[start : start + length]]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(64, 300), st.integers(0, 3))
@settings(max_examples=30)
def test_an_epoch_has_every_example_once_in_batches_within_the_bound(
    lengths: list[int], max_tokens: int, seed: int
) -> None:
    items = [encoded((*range(3), length, *range(length)), (9,)) for length in lengths]
    batches = epoch_batches(items, max_tokens=max_tokens, prefix=3, seed=seed, epoch=0)
    assert sorted(id(item) for batch in batches for item in batch) == sorted(map(id, items))
    for batch in batches:
        assert collate(batch).size <= max(max_tokens, max(map(len, batch)))


def test_epochs_differ_and_repeat_for_a_seed() -> None:
    items = [encoded((1, 2, *range(length)), (9,)) for length in range(1, 60)]
    first, again, second = (epoch_batches(items, max_tokens=100, prefix=2, seed=0, epoch=epoch) for epoch in (0, 0, 1))
    assert first == again
    assert first != second


def test_what_is_asked_about_one_document_is_read_together() -> None:
    documents = [(1, 2, *range(100 * number, 100 * number + 80)) for number in range(3, 9)]
    asked = [encoded((*document, 1, question), (9,)) for question in range(10, 15) for document in documents]
    lonely = [encoded((1, 2, *range(start, start + 81)), (9,)) for start in (1000, 2000)]
    batches = epoch_batches([*asked, *lonely], max_tokens=130, prefix=2, seed=0, epoch=0)
    documents_of = [{item.prompt[:82] for item in batch} for batch in batches if batch[0] in asked]
    assert all(len(documents) == 1 for documents in documents_of)
    assert len(documents_of) == len(documents)
    # A document and what follows it are computed once for the five questions, each of one token and its reply.
    assert sum(collate(batch).size for batch in batches if batch[0] in asked) == 6 * (83 + 5 * 2)
    # Nothing that is common to all prompts makes them alike.
    assert {len(batch) for batch in batches if batch[0] in lonely} <= {1, 2}


def test_rows_of_a_batch_are_of_about_one_length() -> None:
    items = [encoded((length, *range(length)), (9,)) for length in range(1, 200)]
    filled = sum(map(len, items))
    computed = sum(max(map(len, batch)) * len(batch) for batch in packed(items, max_tokens=1000, prefix=0))
    assert computed < 1.1 * filled


def test_prompts_and_replies_that_are_too_long_are_left_out_and_counted(base: Base) -> None:
    made = examples(40)
    made[0] = made[0].model_copy(update={"completion": "red " * 40})
    encoding = encode(made, base.tokenizer, max_prompt_tokens=28, max_completion_tokens=16)
    assert encoding.long_prompts > 0
    assert len(encoding.kept) == 40 - encoding.long_prompts - encoding.long_completions
    assert all(len(item.prompt) <= 28 for item in encoding.kept)


def test_a_prompt_is_what_the_template_renders_and_a_reply_ends_its_turn(base: Base) -> None:
    item = items_of(base, 1)[0]
    text = base.tokenizer.decode(item.prompt)
    assert text.startswith("<|start|> system answer in one word from the line <|end|> <|start|> user")
    assert text.endswith("<|end|> <|start|> assistant")
    assert base.tokenizer.decode(item.completion) == f"{item.example.completion} <|end|>"


def test_a_model_without_a_chat_template_is_refused(base: Base) -> None:
    base.tokenizer.chat_template = None
    with pytest.raises(BadModel, match="chat template"):
        items_of(base, 1)
