"""The ablation of the strategy: each step ranks some of the lists by the gateway's own ensemble."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.evaluator.report.tables import Table
from lab.papers.data import Benchmark, halves
from lab.papers.measures import DEPTH, MAP, Floats, measure, relative
from lab.papers.report import Ablation, Step
from lab.papers.tune import Objective, Scored, coordinate_search
from proto.collections import BM25
from services.gateway.papers.candidates import Listing, Pool, Role
from services.gateway.papers.ensemble import normalised, rank
from services.gateway.papers.query_forms import QUESTION, Form
from services.gateway.papers.weights import ANY_ENCODER, EQUAL, RESCORER, Weights

Pools = Mapping[str, Pool]
Keep = Callable[[Listing], bool]
# Decimals of weights.
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A list that every question has, as weights know it."""

    source: str
    form: Form
    role: Role

    @classmethod
    def of(cls, listing: Listing) -> "Column":
        return cls(listing.source, listing.form, listing.role)

    @property
    def row(self) -> str:
        return RESCORER if self.role == "rescore" else self.source

    def __str__(self) -> str:
        return "re-scoring" if self.role == "rescore" else f"{self.source}, {self.form}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Tuned weights, and their MAP@20 on the questions that they were tuned on."""

    weights: Weights
    value: float


def columns(pools: Pools) -> list[Column]:
    """All lists, in the order of the pools."""
    return list(dict.fromkeys(Column.of(listing) for pool in pools.values() for listing in pool.lists))


def tune(pools: Pools, benchmark: Benchmark, ids: Sequence[str], *, tuned_on: str) -> Choice:
    """The weights that rank these questions best."""
    lists = columns(pools)
    scored: dict[str, Scored] = {}
    for query in ids:
        pool = pools[query]
        scores = {Column.of(listing): normalised(listing) for listing in pool.lists}
        features = np.array(
            [[scores.get(column, {}).get(name, 0.0) for column in lists] for name in pool.candidates]
        ).reshape(len(pool.candidates), len(lists))
        scored[query] = list(pool.candidates), features
    weights, value = coordinate_search(Objective(scored, benchmark.qrels), len(lists))
    rows: dict[str, dict[str, float]] = {}
    for column, weight in zip(lists, weights, strict=True):
        rows.setdefault(column.row, {})[column.form] = round(float(weight), DIGITS)
    return Choice(Weights(weights=_with_any(rows), tuned_on=tuned_on), value)


def rankings(pools: Pools, weights: Weights, keep: Keep = lambda _: True) -> dict[str, list[str]]:
    """The best documents of each question by the lists to keep, of the candidates in those lists."""
    best = {}
    for query, pool in pools.items():
        lists = [listing for listing in pool.lists if keep(listing)]
        names = {name for listing in lists for name in listing.scores}
        part = Pool({name: item for name, item in pool.candidates.items() if name in names}, lists)
        best[query] = list(rank(part, weights))[:DEPTH]
    return best


def ablate(pools: Pools, benchmark: Benchmark, facts: Sequence[tuple[str, str]]) -> Ablation:
    """All steps with their measures; weights tuned on one half are measured on the other, both ways."""

    def step(name: str, ranked: Mapping[str, Sequence[str]]) -> Step:
        # In one order for all, so that steps can be paired.
        return Step(name, measure({query: ranked[query] for query in pools}, benchmark.qrels))

    def by_lists(name: str, keep: Keep) -> Step:
        return step(name, rankings(pools, EQUAL, keep))

    def by_searches(name: str, sources: Sequence[str], forms: Sequence[str]) -> Step:
        return by_lists(name, lambda one: one.role == "retrieval" and one.source in sources and one.form in forms)

    def alone(column: Column) -> Step:
        return by_lists(str(column), lambda one: Column.of(one) == column)

    lists = columns(pools)
    retrieval = [column for column in lists if column.role == "retrieval"]
    forms = list(dict.fromkeys(column.form for column in retrieval))
    sources = list(dict.fromkeys(column.source for column in retrieval))
    encoders = [source for source in sources if source != BM25]
    singles = {column: alone(column) for column in lists}
    of_question = tuple(singles[column] for column in retrieval if column.form == QUESTION)
    others = tuple(step for column, step in singles.items() if column.form != QUESTION or column.role == "rescore")
    by_model = [by_searches(f"{BM25} alone", [BM25], [QUESTION])]
    for count, encoder in enumerate(encoders, 1):
        by_model.append(by_searches(f"+ {encoder}", [BM25, *encoders[:count]], [QUESTION]))
    by_form = [by_searches("question, all retrievers", sources, [QUESTION])]
    for count, form in enumerate(forms[1:], 2):
        by_form.append(by_searches(f"+ {form}", sources, forms[:count]))
    by_model += by_form[1:]
    if any(column.role == "rescore" for column in lists):
        by_model.append(by_lists("+ re-scoring", lambda _: True))
    ids = list(pools)
    one, other = halves(ids)
    choices = {name: tune(pools, benchmark, half, tuned_on=name) for name, half in (("one", one), ("other", other))}
    crossed: dict[str, list[str]] = {}
    for choice, held_out in ((choices["one"], other), (choices["other"], one)):
        crossed |= rankings({query: pools[query] for query in held_out}, choice.weights)
    by_model.append(step("+ weights tuned on the other half", crossed))
    place = {query: index for index, query in enumerate(ids)}
    best = max(of_question, key=lambda one: float(one.values[MAP].mean()))
    return Ablation(
        title=f"Papers for a question: {benchmark.name}",
        facts=tuple(facts),
        singles=of_question,
        steps=tuple(by_model),
        forms=tuple(by_form),
        others=others,
        halves=_halves(
            by_model[-1].values[MAP],
            by_model[-2].values[MAP],
            best,
            {"one": [place[query] for query in one], "other": [place[query] for query in other]},
            choices,
        ),
        weights=_weights(lists, choices),
    )


def _halves(
    full: Floats, equal: Floats, best: Step, places: Mapping[str, list[int]], choices: Mapping[str, Choice]
) -> Table:
    rows = []
    single = best.values[MAP]
    for tuned, reported in (("one", "other"), ("other", "one")):
        index = places[reported]
        gain = relative(full[index], single[index])
        rows.append(
            (
                f"tuned on {tuned} half, reported on {reported}",
                f"{choices[tuned].value:.4f}",
                f"{full[index].mean():.4f}",
                f"{equal[index].mean():.4f}",
                f"{single[index].mean():.4f}",
                f"{gain.value:+.1%} [{gain.low:+.1%}, {gain.high:+.1%}]",
            )
        )
    head = ("", f"{MAP} where tuned", "held out", "equal weights", best.name, "held out over that")
    return Table("Both ways", head, tuple(rows), "Halves are every other question of the file.")


def _weights(lists: Sequence[Column], choices: Mapping[str, Choice]) -> Table:
    rows = []
    for column in lists:
        cells = (f"{choice.weights.of(column.source, column.form, column.role):g}" for choice in choices.values())
        rows.append((str(column), *cells))
    return Table("Weights", ("", *(f"tuned on {name} half" for name in choices)), tuple(rows))


def _with_any(rows: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The rows, and one more for other encoders, with the mean weights of these."""
    encoders = [row for source, row in rows.items() if source not in (BM25, RESCORER)]
    forms = dict.fromkeys(form for row in encoders for form in row)
    average = {form: round(sum(row.get(form, 0.0) for row in encoders) / len(encoders), DIGITS) for form in forms}
    return {source: dict(row) for source, row in rows.items()} | ({ANY_ENCODER: average} if average else {})
