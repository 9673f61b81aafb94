"""Questions that no function of the graph answers: the program is "none"."""

from lab.trainer.synthesise import movies
from lab.trainer.synthesise.programs.drawn import Drawn, Pattern, made
from lab.trainer.synthesise.world import World

_NOT_FINANCE = (
    "which [index|sector] did best [this year|today|last month]",
    "what will {c} be worth [tomorrow|next year]",
    "why did {c} [fall|rise] [today|last week]",
    "should i buy {c}",
    "how is the [technology|energy|banking] sector doing today",
    "what do analysts on twitter say about {c}",
    "how do i open an account to trade {c}",
    "what is the price of [bitcoin|gold|oil] [now|today]",
    "who sued {c} last year",
    "which fund holds the most {c}",
    "what products does {c} sell",
)
_NOT_MOVIE = (
    *movies.FOREIGN_WHOLE[:12],
    "who is {p} [dating|married to]",
    "where does {p} live",
    "how tall is {p}",
    "how many children does {p} have",
    "which theaters show {x} near me",
    "how many followers does {p} have",
)
_NOT_MUSIC = (
    "how many [spotify |]streams does {x} have",
    "what does {p} eat before a concert",
    "which guitar does {p} play",
    "who is {p} dating",
    "how much is {p} worth",
    "what is {x} about",
    "how many tours has {p} done",
    "what is the name of {p}'s fashion line",
    "how many times has {p} been on the cover of time magazine",
    "where can i buy tickets for {p}",
)
_NOT_SPORTS = (
    "who is the tallest player of {t}",
    "who coaches {t}",
    "how many titles has {t} won",
    "where can i watch {t} on tv",
    "how much does a ticket for {t} cost",
    "who owns {t}",
    "which player has the most career assists",
    "who won the [tennis|golf] grand slam in 2017",
    "what is the salary of {t}'s best player",
    "which country hosts the next olympics",
)
_NOT_OPEN = (
    "what should i [cook|wear] [tonight|today]",
    "how many seconds are in {k} [weeks|days]",
    "what is {k} plus {k}",
    "write a poem about {x}",
    "will it rain in {x} tomorrow",
    "translate {x} into [french|german]",
)


def _names(w: World) -> dict[str, str]:
    """What stands in the holes of the questions."""
    v, n = w.voice, w.names
    return {
        "x": v.pick((n.film, n.song))(),
        "p": n.person(),
        "t": n.club(),
        "c": n.company().words,
        "k": str(v.between(2, 99)),
    }


def _none(templates: tuple[str, ...]) -> Pattern:
    def nothing_fits(w: World) -> Drawn | None:
        return made(w, w.voice.say(w.voice.pick(templates), **_names(w)), "none", ())

    return nothing_fits


# Domain -> its share and its questions.
PATTERNS = {
    "finance": (0.7, _none(_NOT_FINANCE)),
    "movie": (0.8, _none(_NOT_MOVIE)),
    "music": (0.6, _none(_NOT_MUSIC)),
    "sports": (0.5, _none(_NOT_SPORTS)),
    "open": (0.4, _none(_NOT_OPEN)),
}
