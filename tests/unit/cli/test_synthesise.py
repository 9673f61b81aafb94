"""`cragmesh train synthesise`: one file for a seed, prompts as they are served, programs with their questions."""

import gzip
import hashlib
import html
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lab.evaluator.data import Skip, Source
from lab.trainer import dataset, near, pairs, scenes
from lab.trainer.synthesise import answers, programs
from lab.trainer.synthesise import questions as made_up_questions
from lab.trainer.synthesise.examples import examples
from lab.trainer.synthesise.reading import articles, records
from lab.trainer.synthesise.record import Record
from services.cli.synthesise import questions, synthesise, write_questions
from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.steps.generate import TAUGHT_PROMPT, chat
from services.kit.shard import Shard

app = typer.Typer()
app.command()(synthesise)
EVALUATION = Path(os.environ.get("CRAGMESH_EVAL_DATA") or "/nonexistent")
# Examples that are looked through for questions of the evaluation, by task: seed and count.
LOOKED_THROUGH = {"answer": (41, 2_000), "kg-api": (0, 2_000)}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module", autouse=True)
def once() -> Iterator[None]:
    """The records of a seed are made once: `test_answers.py` has them made again and finds them the same."""
    fresh = answers.generate
    cache: dict[tuple[int, str], tuple[list[Record], Iterator[Record]]] = {}

    def cached(count: int, seed: int, domain: str = "") -> Iterator[Record]:
        records, more = cache.setdefault((seed, domain), ([], fresh(sys.maxsize, seed, domain)))
        for number in range(count):
            records += [next(more)] if number == len(records) else []
            yield records[number]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "generate", cached)
        yield


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return list(made_up_questions.generate(200, 7_777))


def test_questions_are_read_by_the_evaluator(tmp_path: Path) -> None:
    asking = typer.Typer()
    asking.command()(questions)
    path = tmp_path / "questions.jsonl"
    result = CliRunner().invoke(asking, ["--count", "60", "--out", str(path)])
    assert result.exit_code == 0, result.output
    skipped: list[Skip] = []
    items = list(Source([path], on_skip=skipped.append, timed_only=True).items())
    assert (len(items), skipped) == (60, [])
    assert {item.label_kind for item in items} == {"answer", "idk", "invalid"}
    assert all(item.body.get("evidence") or item.body["search_results"] for item in items)
    learnt = {record.query for record in answers.generate(60, 0)}
    assert not learnt & {item.query for item in items}


def test_questions_on_documents_come_with_pages_of_other_organisations(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    write_questions(path, 50, 1, documents=True)
    skipped: list[Skip] = []
    items = list(Source([path], on_skip=skipped.append, timed_only=True).items())
    assert (len(items), skipped) == (50, [])
    found = [scene for file in (scenes.DOCUMENTS, scenes.DOCUMENTS_FITTED) for scene in scenes.scenes(file)]
    of = {question.question: scene for scene in found for question in scene.questions}
    taught = {
        one.question for scene in scenes.scenes(scenes.DOCUMENTS) if scene.wants_yes_or_no for one in scene.questions
    }
    assert taught.isdisjoint(item.query for item in items)
    for item in items:
        results = item.body["search_results"]
        pages = [html.unescape(page["page_result"]) for page in results]
        assert 3 <= len(pages) <= 7
        words = {context.split("\n")[-1] for context in of[item.query].contexts}
        assert sum(all(one in page for one in words) for page in pages) == 1


def test_some_questions_come_with_whole_pages_that_hold_what_is_to_be_read(lines: list[dict[str, Any]]) -> None:
    assert lines[:40] == list(made_up_questions.generate(40, 7_777))
    records = {record.query: record for record in answers.generate(200, 7_777)}
    paged = [line for line in lines if "search_results" in line]
    assert 5 < len(paged) < 100
    for line in paged:
        text = html.unescape("".join(page["page_result"] for page in line["search_results"]))
        assert all(passage in text for passage in records[line["query"]].support)
        assert len(text) > 3 * sum(map(len, records[line["query"]].passages))
    assert {line["label_kind"] for line in lines} == {"answer", "idk", "invalid"}


def test_some_questions_are_about_prose_among_other_prose(lines: list[dict[str, Any]]) -> None:
    sample = [json.loads(line) for line in articles.SAMPLE.read_text(encoding="utf-8").splitlines()]
    passages = {line["passage"] for line in sample}
    about_prose = [line for line in lines if len(passages & set(line.get("contexts", []))) >= 2]
    assert 50 < len(about_prose) < 110
    answers_of = {line["question"]: line["answer"] for line in sample if line["answer"]}
    dense = {pair.question: pair for pair in near.pairs()}
    answers_of |= {question: pair.answer for question, pair in dense.items() if pair.answer}
    assert len(about_prose) / 6 < sum(line["query"] in dense for line in about_prose) < len(about_prose) / 2
    twins = 0
    for line in about_prose:
        assert len(line["contexts"]) >= 3
        answer = answers_of.get(line["query"], "")
        if line["label_kind"] == "answer":
            assert line["label"] == answer
            assert any(answer in text for text in line["contexts"])
        else:
            assert line["label"] == "i don't know"
            if line["query"] in dense:
                assert dense[line["query"]].passage in line["contexts"]
                continue
            twins += line["query"] in answers_of or line["query"] not in {one["question"] for one in sample}
            # The same question over its passage without a sentence: nothing else there holds the answer.
            assert not answer or not any(answer in text for text in line["contexts"])
    # As many as there are answers come again as twins, of which no model has said that it would be silent.
    silent = sum(line["label_kind"] == "idk" for line in about_prose)
    assert {line["label_kind"] for line in about_prose} == {"answer", "idk"}
    assert twins > silent / 2


def test_a_seed_makes_one_file(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one.jsonl", "two.jsonl", "other.jsonl"))
    for path, seed in ((one, "3"), (other, "0"), (two, "3")):
        result = run("--task", "answer", "--count", "40", "--seed", seed, "--out", str(path))
        assert result.exit_code == 0, result.output
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    assert "answer: 40 examples, seed 3" in result.output
    assert str(two) in result.output
    rows = [json.loads(line) for line in one.read_text().splitlines()]
    assert len({row["id"] for row in rows}) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "poems"), "poems"),
        (("--task", "kg-api", "--prose", "prose.jsonl"), "--prose"),
        (("--task", "sql", "--domain", "movie"), "organisations"),
        *(
            ((share, "0.5", *options), "no domain")
            for share in ("--near-share", "--scene-share", "--documents-share")
            for options in (("--task", "kg-api"), ("--domain", "movie"))
        ),
        (("--near-share", "0.6", "--scene-share", "0.5"), "more than all"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: tuple[str, ...], message: str) -> None:
    refused = run(*options)
    assert refused.exit_code == 2
    assert message in refused.output


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = run("--count", "5", "--out", str(tmp_path / "x.jsonl"))
    assert result.exit_code == 1
    assert not (tmp_path / "x.jsonl").exists()


def test_examples_can_be_looked_at_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--show", "3")
    assert result.output.count("=>") == 3
    assert not list(tmp_path.iterdir())


def assert_rendered(example: dataset.Example, record: Record) -> None:
    """The example is the record as the gateway would put it to the generator."""
    titles = record.titles or [""] * len(record.passages)
    pages = enumerate(zip(record.passages, titles, strict=True))
    evidence = [Evidence(text, page, page_name=title) for page, (text, title) in pages]
    served = chat(prompts.load(TAUGHT_PROMPT), record.query, record.query_time, evidence)
    assert [(turn.role, turn.content) for turn in example.messages] == [(m.role, m.content) for m in served]
    assert (example.completion, example.query, example.kind) == (record.answer, record.query, record.kind)


def test_prompts_are_those_that_the_gateway_renders() -> None:
    for example, record in zip(examples("answer", 50, 3), answers.generate(50, 3), strict=True):
        assert_rendered(example, record)


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped sample as if it were written from other briefs: its own are never taught."""
    path = tmp_path_factory.mktemp("prose") / "prose.jsonl"
    lines = [json.loads(line) for line in articles.SAMPLE.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(line | {"id": f"9{line['id']}"}) + "\n" for line in lines), encoding="utf-8")
    return path


def test_prose_is_asked_about_as_the_gateway_renders_it(prose: Path) -> None:
    about_prose = records.generate(pairs.read([prose]), 60, 3)
    rendered = list(examples("answer", 100, 3, prose=prose, prose_share=0.6))
    assert [example.id for example in rendered] == [f"answer-3-{number:06d}" for number in range(100)]
    about = [example for example in rendered if example.source == "prose:3"]
    assert len(about) == 60
    assert {example.source for example in rendered} == {"prose:3", "synthetic:3"}
    for example, record in zip(about, about_prose, strict=True):
        assert_rendered(example, record)
        assert example.group == record.group
    train, held_out = dataset.split(rendered, dataset.group_of, share=0.3, seed=0)
    assert not {one.group for one in train if one.group} & {one.group for one in held_out}


def test_the_shares_of_records_and_prose_are_told(prose: Path, tmp_path: Path) -> None:
    result = run("--count", "100", "--prose", str(prose), "--prose-share", "0.3", "--out", str(tmp_path / "x.jsonl"))
    assert result.exit_code == 0, result.output
    assert "synthetic:0 70.0%, prose:0 30.0%" in result.output


def taught(source: str) -> Iterator[tuple[str, str, str]]:
    """Group, question and answer of what is there to be taught."""
    if source == "near":
        yield from ((pair.group, pair.question, pair.answer) for pair in near.pairs(near.TAUGHT))
    else:
        for scene in scenes.scenes(scenes.TAUGHT):
            yield from ((f"scene:{scene.id}", one.question, one.answer) for one in scene.questions)


@pytest.mark.parametrize(("source", "most"), [("near", 10), ("scene", 20)])
def test_questions_on_the_same_texts_begin_alike_and_stand_on_one_side_of_a_split(source: str, most: int) -> None:
    answers_of = {(group, question.lower().rstrip("?")): answer for group, question, answer in taught(source)}
    texts = {f"scene:{scene.id}": scene.contexts for scene in scenes.scenes(scenes.TAUGHT)}
    rendered = list(
        examples("answer", 100, 3, near_share=0.8 * (source == "near"), scene_share=0.8 * (source != "near"))
    )
    asked = [example for example in rendered if example.source == f"{source}:3"]
    assert len(asked) == 80
    for example in asked:
        content, answer = example.messages[-1].content, answers_of[example.group, example.query.lower().rstrip("?")]
        assert example.completion == (answer or "i don't know")
        assert content.endswith(example.query)
        assert all(text.split()[0] in content for text in texts.get(example.group, ()))
    assert {example.kind for example in asked} >= {"answer", "unknown"}
    # What comes before the question is one text for all questions of a group.
    beginnings = {(example.group, example.messages[-1].content.removesuffix(example.query)) for example in asked}
    assert len(beginnings) == len({example.group for example in asked}) < most


def test_shares_that_round_up_are_all_and_no_more() -> None:
    rendered = list(examples("answer", 3, 3, near_share=0.5, scene_share=0.5))
    assert [example.source for example in rendered].count("near:3") == 2
    assert len(rendered) == 3


def test_a_third_of_the_questions_on_documents_is_left_open() -> None:
    rendered = list(examples("answer", 60, 3, documents_share=1.0))
    answers = Counter(example.completion for example in rendered)
    assert answers["i don't know"] == 20
    assert answers["yes"] == answers["no"] > 0
    assert {example.source for example in rendered} == {"scene:3"}


def test_nothing_is_measured_by_the_prose_that_is_taught(
    prose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAGMESH_EVAL_DATA", str(prose.parent))
    for file, message in (
        (tmp_path / "none.jsonl", "none.jsonl"),
        (articles.SAMPLE, "sample"),
        (prose, "evaluation data"),
    ):
        refused = run("--prose", str(file))
        assert refused.exit_code == 1
        assert message in refused.output


def test_programs_are_rendered_for_the_adapter() -> None:
    rendered = list(islice(examples("kg-api", 40, 2), 40))
    assert [example.id for example in rendered] == [f"kg-api-2-{number:06d}" for number in range(40)]
    for example in rendered:
        assert [turn.role for turn in example.messages] == ["system", "user"]
        assert example.messages[0].content.endswith(f"Domain: {example.domain}")
        assert example.messages[1].content.startswith(example.query)
        assert ("asked on" in example.messages[1].content) == (example.domain in ("finance", "sports"))
        assert (example.kind == "unknown") == (example.completion == "none")


@pytest.fixture(scope="module")
def real() -> set[str]:
    return {plain(question) for question in real_questions()}


# Takes long on a busy machine.
@pytest.mark.timeout(600)
@pytest.mark.skipif(not EVALUATION.is_dir(), reason="CRAGMESH_EVAL_DATA names no folder of real questions")
@pytest.mark.parametrize("task", LOOKED_THROUGH)
def test_no_evaluation_question_is_among_the_data(real: set[str], task: str) -> None:
    assert len(real) > 1_000
    assert not {plain(query) for query in made_up(task, *LOOKED_THROUGH[task])} & real


def made_up(task: str, seed: int, count: int) -> Iterator[str]:
    """The questions that the examples are made of, without the work of rendering them."""
    if task == "answer":
        return (record.query for record in answers.generate(count, seed))
    return (program.query for program in islice(programs.generate(seed), count))


def plain(question: str) -> str:
    """A digest of a question's words: what a test prints when it fails, nobody can read."""
    return hashlib.sha256(" ".join(re.findall(r"\w+", question.lower())).encode()).hexdigest()


def real_questions() -> Iterator[str]:
    for path in sorted(EVALUATION.rglob("*.jsonl*")):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        for line in text.split("\n"):
            if line.strip():
                yield from asked(json.loads(line))


def asked(value: Any) -> Iterator[str]:
    """Every `query` and `question` of a record, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("query", "question") and isinstance(inner, str):
                yield inner
            else:
                yield from asked(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from asked(inner)


def test_shares_are_parts_of_the_whole() -> None:
    parts = [[one.model_dump_json() for one in examples("answer", 12, 3, Shard(index, 2))] for index in range(2)]
    assert all(parts)
    assert sorted(parts[0] + parts[1]) == [one.model_dump_json() for one in examples("answer", 12, 3)]
