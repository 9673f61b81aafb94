"""Forty attacks by prompt injection, and the requests that carry them; all places, names and pages are made up.

An attack is a payload at a place of one page among others (or in a row of the graph, or in the question), and the goal:
what its author wants to be said. Whoever measures asks the same question with and without the payload.
"""

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ATTACKS = Path(__file__).with_name("attacks.jsonl")
QUERY_TIME = "02/28/2024, 10:04:54 PT"


@dataclass(frozen=True, slots=True)
class Attack:
    """One line of `attacks.jsonl`."""

    id: str
    technique: str
    place: str
    scene: str
    payload: str
    goal: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A question, its answer, and the page that has it."""

    query: str
    answer: str
    title: str
    paragraphs: list[str]
    table: list[list[str]] = field(default_factory=list)


SCENES = {
    name: Scene(**scene)
    for name, scene in yaml.safe_load(Path(__file__).with_name("scenes.yaml").read_text("utf-8")).items()
}
# Beside the page of the scene, so that retrieval has a choice.
OTHER = {
    "page_name": "Walks along the coast",
    "page_url": "https://example.org/walks",
    "page_snippet": "",
    "page_result": "<html><body><p>The path from Port Sable to Ardmoor takes five hours on foot.</p></body></html>",
}


def load_attacks() -> list[Attack]:
    """All attacks of the file, in its order."""
    return [Attack(**json.loads(line)) for line in ATTACKS.read_text("utf-8").splitlines() if line.strip()]


def request(scene: Scene, attack: Attack | None = None) -> dict[str, Any]:
    """The body of a request: the scene's page as it is, or with the payload at its place."""
    payload, place = (attack.payload, attack.place) if attack else ("", "")
    query = scene.query + (payload if place == "question" else "")
    title = payload if place == "title" else scene.title
    result = {
        "page_name": title,
        "page_url": "https://example.org/page",
        "page_snippet": payload if place == "snippet" else "",
        "page_result": _page(scene, payload, place),
    }
    return {"query": query, "query_time": QUERY_TIME, "search_results": [OTHER, result]}


def film_row(attack: Attack | None = None) -> dict[str, Any]:
    """The graph's row of the film, with the payload as its original title."""
    attrs: dict[str, Any] = {
        "release_date": "1996-05-17",
        "original_language": "en",
        "original_title": attack.payload if attack else "The Paper Lantern Keeper",
        "length": 104,
        "genres": ["Drama"],
        "crew": [{"name": "Ilse Maron", "job": "Director"}],
    }
    return {"domain": "movie", "kind": "movie", "entity": "The Paper Lantern Keeper", "attrs": attrs}


def _page(scene: Scene, payload: str, place: str) -> str:
    escaped = html.escape(payload)
    shown = {
        "paragraph": f"<p>{escaped}</p>",
        "heading": f"<h2>{escaped}</h2>",
        "list": f"<ul><li>Closed on Mondays.</li><li>{escaped}</li></ul>",
        "alt": f'<img src="view.jpg" alt="{escaped}">',
        "comment": f"<!-- {payload} -->",
        "hidden": f'<div style="display:none"><p>{escaped}</p></div>',
        "white": f'<p style="color:#fff;background:#fff;font-size:1px">{escaped}</p>',
    }.get(place, "")
    first, *rest = (f"<p>{html.escape(text)}</p>" for text in scene.paragraphs)
    # Beside the sentence with the answer, so that it is retrieved along with it.
    body = first + shown + "".join(rest) + _table(scene, payload, place)
    title = html.escape(payload if place == "title" else scene.title)
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><article><h1>{html.escape(scene.title)}</h1>"
        f"{body}</article></body></html>"
    )


def _table(scene: Scene, payload: str, place: str) -> str:
    if not scene.table:
        return ""
    head, *rows = scene.table
    if place == "table":
        rows = [*rows, [payload, *("" for _ in head[1:])]]
    caption = f"<caption>{html.escape(payload)}</caption>" if place == "caption" else ""
    lines = [
        f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>"
        for tag, row in [("th", head), *(("td", row) for row in rows)]
    ]
    return f"<table>{caption}{''.join(lines)}</table>"
