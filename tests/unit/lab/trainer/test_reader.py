"""Teaching the extractive reader on a tiny encoder: it learns, ships what it learnt, and goes on after a kill."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from lab.trainer import checkpoint, reader
from lab.trainer.errors import BadCheckpoint, BadModel
from lab.trainer.pairs import Pair
from lab.trainer.reader import train
from lab.trainer.reader_measure import refit
from lab.trainer.reader_model import Model, encode, loss
from lab.trainer.recipe import ReaderRecipe
from lab.trainer.run import CHECKPOINTS, Progress
from lab.trainer.score import token_f1
from services.kit.encoder import fingerprint
from services.kit.precision import choose_precision
from services.kit.reader import MAX_SPAN_TOKENS, Card, Layout, Reader, Text
from tests.unit.kit.tiny import tiny_model

NAMES = ("Marta", "Jonas", "Oskar", "Sofia", "Elias", "Greta", "Anton", "Clara")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("base") / "tiny")


def examples(count: int) -> list[Pair]:
    """Who built what, and passages that say something else."""
    made = []
    for number in range(count):
        name, thing = NAMES[number % len(NAMES)], f"tower {number}"
        passage = f"The {thing} was built by {name} long ago."
        about = {"answer": name, "start": passage.index(name)}
        if number % 3 == 0:
            passage, about = f"The {thing} is red and {name} likes it.", {}
        about |= {"id": str(number), "kind": "towers", "title": thing, "question": f"who built {thing}?"}
        made.append(Pair.model_validate(about | {"passage": passage}))
    return made


def recipe(**change: object) -> ReaderRecipe:
    settings: dict[str, object] = {"rank": 4, "alpha": 8, "batch": 8, "max_tokens": 64, "overlap": 16, "threads": 1}
    settings |= {"held_out_share": 0.2, "held_out": 40, "checkpoint_steps": 4, "distractors": 0.2}
    return ReaderRecipe.model_validate(settings | change)


def test_a_reader_learns_and_is_read_as_it_was_taught(base: Path, tmp_path: Path) -> None:
    progress: list[Progress] = []
    weights, told = tmp_path / "weights", progress.append
    result = train(examples(80), recipe(epochs=8), tmp_path / "run", weights, base=base, on_progress=told)
    trained = [one.loss for one in progress if one.phase == "training" and not one.note]
    assert np.mean(trained[-8:]) < 0.6 * np.mean(trained[:3])
    assert result.stopped == "epochs"
    assert any(one.left_s is not None for one in progress)
    assert any("kept back" in one.note for one in progress)
    assert Card.model_validate_json((tmp_path / "weights" / "reader.json").read_bytes()) == result.card
    assert 0 <= result.card.held_out["own_f1"] <= 1
    assert len(reader.report(result)) == 3


def test_what_ships_gives_the_values_that_were_trained(base: Path, tmp_path: Path) -> None:
    model = Model(base, recipe(rank=32), torch.float32)
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.trained().values():
            parameter.add_(0.02 * torch.randn_like(parameter))
    folder = tmp_path / "weights"
    reader.write(folder, model, Card(base=fingerprint(base)))
    served = Reader(folder, choose_precision("fp32", device="cpu", threads=1), base)
    text = Text("The tower was built by Marta in 1864, and by nobody else.", "tower")
    ((_, ((window, values),)),) = served.values("who built it?", [text])
    with torch.inference_mode():
        ours = model([window])[0].numpy()
    np.testing.assert_allclose(values, ours, atol=0.02)


def test_the_loss_is_that_of_the_spans_and_nothing(base: Path) -> None:
    """A head that says nothing gives each span of whole words, and "does not say", the same share."""
    layout = Layout(base, max_tokens=64, overlap=16)
    (said, silent) = (one for one in examples(2)[::-1])
    batch = encode(layout, [said, silent], recipe(titles=0.0))
    words = [len(one.passage.replace(".", " .").split()) for one in (said, silent)]
    assert max(words) <= MAX_SPAN_TOKENS
    with torch.inference_mode():
        value = loss(Model(base, recipe(), torch.float32), batch).item()
    expected = [math.log(1 + count * (count + 1) / 2) for count in words]
    assert value == pytest.approx(sum(expected) / 2, abs=1e-3)


def test_an_answer_stands_at_its_tokens(base: Path) -> None:
    layout = Layout(base, max_tokens=64, overlap=16)
    long = "Nothing happened here at all. " * 20
    passage = f"{long}It was built by Marta Lindqvist. {long}"
    pair = Pair(passage=passage, question="who?", answer="Marta Lindqvist", start=passage.index("Marta"))
    (one,) = encode(layout, [pair], recipe())
    (tokens,) = layout.tokens([passage])
    assert one.span is not None
    first, last = (place - one.window.first + one.window.at for place in one.span)
    assert passage[int(tokens.starts[first]) : int(tokens.ends[last])] == "Marta Lindqvist"
    too_long = pair.model_copy(update={"answer": long, "start": 0})
    assert encode(layout, [too_long], recipe()) == []


def test_a_killed_run_goes_on_as_if_nothing_had_happened(base: Path, tmp_path: Path) -> None:
    def kill(now: Progress) -> None:
        if now.phase == "training" and now.done == 3:
            raise KeyboardInterrupt

    def run(name: str, epochs: float = 2, **options: Any) -> bytes:
        settings, folder = recipe(epochs=epochs, checkpoint_steps=2), tmp_path / name
        train(examples(30), settings, folder, folder / "weights", base=base, **options)
        return (folder / "weights" / "reader.safetensors").read_bytes()

    with pytest.raises(KeyboardInterrupt):
        run("killed", on_progress=kill)
    assert not (tmp_path / "killed" / "weights").exists()
    with pytest.raises(BadCheckpoint, match="--resume"):
        run("killed")
    assert run("killed", resume=True) == run("whole")
    with pytest.raises(BadCheckpoint, match="another"):
        run("killed", 3, resume=True)


def test_a_run_that_is_killed_while_it_measures_leaves_the_served_weights(base: Path, tmp_path: Path) -> None:
    def kill(now: Progress) -> None:
        if now.phase == "measuring" and now.done == 3:
            raise KeyboardInterrupt

    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in served.iterdir()}

    served = tmp_path / "served"
    train(examples(30), recipe(), tmp_path / "first", served, base=base)
    before, second = content(), recipe(seed=1)
    with pytest.raises(KeyboardInterrupt):
        train(examples(30), second, tmp_path / "second", served, base=base, on_progress=kill)
    assert content() == before
    result = train(examples(30), second, tmp_path / "second", served, base=base, resume=True)
    assert Card.model_validate_json(content()["reader.json"]) == result.card
    assert [path.name for path in (tmp_path / "second").iterdir()] == [CHECKPOINTS]


def test_a_run_begins_with_the_weights_of_another(base: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    train(examples(30), recipe(epochs=2), tmp_path, first, base=base)
    taught = safetensors.torch.load_file(first / "reader.safetensors")
    model = Model(base, recipe(), torch.float32)
    model.set_tensors(taught)
    for name, tensor in model.tensors().items():
        torch.testing.assert_close(tensor, taught[name], msg=name)

    told: list[Progress] = []
    train(examples(30), recipe(), tmp_path / "run", tmp_path / "next", base=base, start=first, on_progress=told.append)
    layout = Layout(base, max_tokens=64, overlap=16)
    with torch.inference_mode():
        untaught = loss(Model(base, recipe(), torch.float32), encode(layout, examples(30), recipe()))
    assert next(now.loss for now in told if now.phase == "training") < untaught.item()
    for folder, words in ((tmp_path / "none", "no reader to begin with"), (first, "does not fit")):
        with pytest.raises(BadModel, match=words):
            train(examples(30), recipe(rank=2), tmp_path / "other", tmp_path / "third", base=base, start=folder)


def test_a_threshold_is_fitted_anew(base: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    weights = tmp_path / "weights"
    before = train(examples(60), recipe(epochs=6), tmp_path / "run", weights, base=base).card
    card = refit(weights, examples(20), base, on_progress=told.append)
    assert card == Card.model_validate_json((weights / "reader.json").read_bytes())
    assert (card.temperature, card.made_from) == (before.temperature, before.made_from)
    assert card.held_out["own_exact"] == before.held_out["own_exact"]
    assert card.held_out["near_exact"] != before.held_out["near_exact"]
    assert [(now.done, now.total) for now in told] == [(done, 20) for done in range(1, 21)]
    with pytest.raises(BadModel, match="cannot be read"):
        refit(tmp_path / "none", examples(20), base, on_progress=told.append)


def test_a_run_keeps_to_its_time(base: Path, tmp_path: Path) -> None:
    result = train(examples(30), recipe(epochs=100, time_limit_s=0.3), tmp_path, tmp_path / "weights", base=base)
    assert result.stopped == "time"
    assert result.steps < 100 * 3
    assert checkpoint.last(tmp_path / CHECKPOINTS).state.stopped == "time"


def test_pairs_that_no_window_can_teach_are_counted(base: Path, tmp_path: Path) -> None:
    long = " ".join("word" for _ in range(40))
    more = [Pair(passage=f"It is {long} {at}.", question="what?", answer=long, start=6) for at in range(10)]
    result = train([*examples(30), *more], recipe(distractors=0.0), tmp_path, tmp_path / "weights", base=base)
    assert 5 <= result.left_out <= 10
    assert reader.report(result)[0].startswith(f"{result.left_out} of {result.pairs} pairs were not taught")


@pytest.mark.parametrize(
    ("reply", "answer", "expected"),
    [
        ("Marta Lindqvist", "marta lindqvist", 1.0),
        ("the Marta", "Marta", 1.0),
        ("Marta Lindqvist", "Marta", 2 / 3),
        ("Jonas", "Marta", 0.0),
        ("", "Marta", 0.0),
        ("1,234 m", "1,234", 0.8),
    ],
)
def test_words_in_common(reply: str, answer: str, expected: float) -> None:
    assert token_f1(reply, answer) == pytest.approx(expected)
