"""Questions about organisations' tables: the statements that are taught find the answers, rendered as served."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.draft.graph import drafted_graph
from lab.trainer.synthesise import tables
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.sql.statement import Statement
from services.kg.generate.sql.writer import ONE_LINE
from services.kg.syntax import parse_select

ORGANISATIONS = tables.organisations()


def same(found: Sequence[object], answer: str) -> bool:
    """Whether all that is found is in the answer, or all that is in the answer is found."""

    def plain(value: object) -> str:
        text = re.sub(r"(?<=\d),(?=\d{3})", "", str(value).strip(" £$€%").lower())
        return f"{float(text):.2f}" if re.fullmatch(r"-?\d+(\.\d+)?", text) else re.sub(r"\W+", " ", text)

    values = {plain(value) for value in found}
    return plain(answer) in values or {plain(part) for part in re.split(r", | and ", answer)} <= values


@pytest.mark.parametrize("organisation", ORGANISATIONS[::8], ids=lambda path: path.name)
def test_statements_find_the_answers(organisation: Path, tmp_path: Path) -> None:
    name = organisation.name
    with drafted_graph(name, organisation, tmp_path) as (engine, catalogue):
        executor, now = Executor(engine, NameIndex(engine, catalogue), catalogue), tables.asked_at(organisation)
        for one in tables.questions(organisation):
            if one.sql == tables.NONE:
                continue
            program = Statement(parse_select(one.sql), catalogue.domains[name]).sql(now.date())
            outcome = executor.execute(program, domain=name, query_time=now, seconds=5.0)[-1]
            assert outcome.status in ("ok", "empty"), (one, outcome.message)
            found = [row[key] for row in outcome.rows for key in outcome.shown] if outcome.value is None else []
            found += [outcome.value] if outcome.value is not None else []
            if one.answer.lower() not in ("yes", "no"):
                assert any(same(found, answer) for answer in (one.answer, *one.alternatives)), (one, found)


@pytest.mark.parametrize("organisation", ORGANISATIONS, ids=lambda path: path.name)
def test_what_is_taught_can_be_said(organisation: Path) -> None:
    asked = tables.questions(organisation)
    assert len({one.question for one in asked}) == len(asked)
    for one in asked:
        assert (one.sql == tables.NONE) == (not one.answer)
        assert ONE_LINE.holds(one.sql), one.sql


def test_prompts_are_those_that_are_served() -> None:
    examples = list(tables.examples(folders=ORGANISATIONS[:1]))
    asked = tables.questions(ORGANISATIONS[0])
    of_others = tables.of_others(ORGANISATIONS[0])
    assert [one.query for one in examples] == [one.question for one in (*asked, *of_others)]
    assert [one.completion for one in examples[len(asked) :]] == ["NONE"] * tables.OTHERS
    assert of_others != tables.of_others(ORGANISATIONS[1])
    first = examples[0]
    shared = first.messages[-1].content.partition("Question:")[0]
    assert "CREATE TABLE" in shared
    for one in examples:
        assert one.messages[-1].content.startswith(shared)
        assert f"{one.query} (asked on" in one.messages[-1].content
        assert one.group == first.group
