"""Programs about entries of an encyclopaedia."""

from lab.trainer.synthesise import entries
from lab.trainer.synthesise.programs.drawn import Drawn, made, quoted
from lab.trainer.synthesise.world import Entry, World


def entry_fact(w: World) -> Drawn | None:
    v = w.voice
    entry = v.pick(w.entries)
    ask = v.pick(entries.KINDS[entry.kind])
    return made(
        w,
        v.ask(ask.nouns, ask.whole, x=entry.name),
        f'get_open({quoted(entry.name)})["{ask.key}"]',
        (entry.facts[ask.key],),
    )


def entry_compare(w: World) -> Drawn | None:
    v = w.voice
    kind, key, words = v.pick(entries.COMPARED)
    pool: list[Entry] = [entry for entry in w.entries if entry.kind == kind]
    if len(pool) < 2:
        return None
    one, two = v.some(pool, 2)
    query = v.say(
        "[which [one |]{w}, {a} or {b}|{a} or {b}, which [one |]{w}|between {a} and {b}, which {w}]",
        w=v.say(words),
        a=one.name,
        b=two.name,
    )
    return made(
        w,
        query,
        "\n".join(f'get_open({quoted(e.name)})["{key}"]' for e in (one, two)),
        (one.facts[key], two.facts[key]),
        "comparison",
    )


def entry_hop(w: World) -> Drawn | None:
    v = w.voice
    by_name = {entry.name: entry for entry in w.entries}
    entry = v.pick(w.entries)
    key = v.pick([k for k in ("owner", "capital", "founder") if k in entry.facts] or ["none"])
    other = by_name.get(entry.facts.get(key, ""))
    if other is None:
        return None
    ask = v.pick([a for a in entries.KINDS[other.kind] if a.nouns])
    noun = v.say(v.pick(ask.nouns), x=f"the {key} of {entry.name}")
    return made(
        w,
        v.say("what is {n}", n=noun),
        f'get_open({quoted(entry.name)})["{key}"]\nget_open(*["{key}"])["{ask.key}"]',
        (other.facts[ask.key],),
        "multi-hop",
    )


def entry_about(w: World) -> Drawn | None:
    v = w.voice
    entry = v.pick(w.entries)
    return made(
        w,
        v.say("[tell me about {x}|what is {x}|what do you know about {x}|{x}, what is that]", x=entry.name),
        f"get_open({quoted(entry.name)})",
        (entry.name,),
    )


PATTERNS = (
    (5.5, entry_fact),
    (1.0, entry_compare),
    (0.5, entry_hop),
    (0.4, entry_about),
)
