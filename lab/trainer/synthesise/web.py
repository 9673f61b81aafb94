"""Questions answered from web pages: long passages in which one sentence or one row matters, or none does."""

from collections.abc import Sequence

from lab.trainer.synthesise import prose
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.prose import Fact
from lab.trainer.synthesise.record import Record, open_record

# Of one passage, like the parent chunks that the gateway shows, shortened for the time that reading takes in training.
PASSAGE_CHARS = (500, 1_400)
PASSAGES = (1, 3)
# Rows of a table, and its columns beside the name.
ROWS, COLUMNS = (4, 9), (2, 4)


# The words of a question are often not those of the page: so for each fact both are written apart.
STORIES, _PAGES = prose.read("pages.yaml")
KINDS = {**prose.KINDS, **STORIES}


def _thing(v: Phrasing, n: Names, kind: str) -> str:
    if kind not in STORIES:
        return prose.named_thing(v, n, kind)
    names: list[str] = _PAGES["kinds"][kind]["names"]
    return v.pick(names).format(c=n.coined(), i=v.between(4, 20), y=v.between(1950, 2022))


def filler(v: Phrasing, n: Names) -> str:
    """A sentence of a page that answers nothing."""
    template = v.pick(_PAGES["filler"])
    slots = {"p": n.person(), "q": n.place(), "y": v.between(1880, 2023), "k": v.between(12, 900)}
    return v.say(template, **slots, a=n.word("adjective"), b=n.word("noun"))


def _sentences(v: Phrasing, n: Names, facts: Sequence[Fact], values: dict[str, str]) -> list[str]:
    """Sentences with the facts of one thing, other sentences between them."""
    sentences: list[str] = []
    for fact in facts:
        sentences += [filler(v, n) for _ in range(v.between(0, 2))]
        sentences.append(v.say(v.pick(fact.sentences), x="it", y=values[fact.key]))
    return sentences


def _beside(v: Phrasing, n: Names, kind: str) -> str:
    """A few sentences about another thing, which may hold the same facts of it."""
    leads, facts = KINDS[kind]
    name = _thing(v, n, kind)
    sentences = [v.say(v.pick(fact.sentences), x=name, y=fact.value(v, n)) for fact in v.some(facts, v.between(1, 3))]
    return " ".join([v.say(v.pick(leads), x=name, p=n.place()), *sentences])


def _passages(v: Phrasing, n: Names, title: str, telling: Sequence[str], others: Sequence[str]) -> list[str]:
    """Passages of a page and of others, the telling sentences together somewhere in one of them."""
    passages: list[str] = []
    count = v.between(*PASSAGES)
    right = v.between(0, count - 1)
    spare = list(others)
    for index in range(count):
        sentences = list(telling) if index == right else []
        goal = v.between(*PASSAGE_CHARS)
        while sum(map(len, sentences)) < goal:
            extra = spare.pop() if spare and v.chance(0.5) else filler(v, n)
            sentences.insert(0 if v.chance(0.5) else len(sentences), extra)
        start = f"{title}: " if index == right and v.chance(0.5) else ""
        # Chunks begin and end anywhere.
        if v.chance(0.4) and index != right:
            sentences[0] = sentences[0][v.between(0, 20) :].partition(" ")[2] or sentences[0]
        passages.append(start + " ".join(sentences))
    return passages


def story(v: Phrasing, n: Names) -> Record:
    """A fact in a long page, in other words than the question's; other things on the page have similar ones."""
    when = v.moment()
    kind = v.weighted({name: 2.0 if name in STORIES else 1.0 for name in KINDS})
    leads, facts = KINDS[kind]
    who, other = _thing(v, n, kind), _thing(v, n, kind)
    case = v.weighted({"right": 6.5, "absent": 2.0, "stranger": 1.0, "false": 0.7})
    chosen = v.some(facts, v.between(2, len(facts)))
    target = chosen[0]
    values = {fact.key: fact.value(v, n) for fact in chosen}
    known = [fact for fact in chosen if not (case == "absent" and fact is target)]
    v.rng.shuffle(known)
    subject = other if case == "stranger" else who
    telling = [v.say(v.pick(leads), x=subject, p=n.place()), *_sentences(v, n, known, values)]
    others = [_beside(v, n, kind if v.chance(0.6) else v.pick(list(KINDS))) for _ in range(v.between(1, 5))]
    if case == "false" and kind in prose.CONTRADICTIONS:
        telling.append(v.say(prose.CONTRADICTIONS[kind], p=n.place()))
        query = v.say(v.pick(prose.FALSE_QUESTIONS[kind]), x=who, y=v.between(1950, 2020))
        return open_record(v.typed(query), when, "invalid_question", _passages(v, n, subject, telling, others))
    query = v.typed(v.ask(target.nouns, target.whole, x=who))
    passages = _passages(v, n, subject, telling, others)
    if case in ("absent", "stranger"):
        return open_record(query, when, "unknown", passages)
    value = values[target.key]
    return open_record(query, when, "answer", passages, prose.said(target, value), (value,))


def table(v: Phrasing, n: Names) -> Record:
    """A cell of a Markdown table on a page, asked by its row; a missing row or column makes an abstention."""
    when = v.moment()
    kind = v.pick(list(KINDS))
    columns = v.some(KINDS[kind][1], v.between(*COLUMNS))
    things = list(dict.fromkeys(_thing(v, n, kind) for _ in range(v.between(*ROWS))))
    body = [[thing, *(fact.value(v, n) for fact in columns)] for thing in things]
    case = v.weighted({"right": 7.0, "row": 1.5, "column": 1.5})
    row = v.pick(body)
    column = v.pick(columns)
    place = 1 + columns.index(column)
    rows = [cells for cells in body if case != "row" or cells is not row]
    heads = [kind, *(fact.key for fact in columns)]
    if case == "column" and len(columns) > 1:
        heads.pop(place)
        rows = [[cell for index, cell in enumerate(cells) if index != place] for cells in rows]
    elif case == "column":
        case, rows = "row", [cells for cells in body if cells is not row]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *(f"| {' | '.join(cells)} |" for cells in rows)]
    title = v.say("[{p}|{p} and {q}]: [{kind}s compared|a list of {kind}s]", p=n.place(), q=n.place(), kind=kind)
    passages = [f"{title}\n" + "\n".join(lines)]
    passages += [" ".join(filler(v, n) for _ in range(v.between(3, 9))) for _ in range(v.between(0, 2))]
    v.rng.shuffle(passages)
    query = v.typed(v.ask(column.nouns, column.whole, x=row[0]))
    if case != "right":
        return open_record(query, when, "unknown", passages)
    value = row[place]
    return open_record(query, when, "answer", passages, prose.said(column, value), (value,))


PATTERNS = ((3.0, story), (1.0, table))
