"""Names of people, works, companies and places that do not exist, put together from syllables and common words."""

from string import Formatter

from lab.trainer.synthesise.phrasing import Phrasing, lines_of

_WORDS = {name: " ".join(lines).split() for name, lines in lines_of(__package__, "words.txt").items()}
_FORMS = lines_of(__package__, "forms.txt")
_FIRST = _WORDS["first names"]
_HEAD = _WORDS["beginnings"]
_MIDDLE = _WORDS["middles"]
_TAIL = _WORDS["endings"]
_ADJECTIVE = _WORDS["adjectives"]
_NOUN = _WORDS["nouns"]
_VERB = _WORDS["verbs"]
_LOVE = _WORDS["what songs do it to"]
_TRADE = _WORDS["trades"]
_FORM = (
    "Inc.", "Corp.", "Corporation", "Ltd.", "plc", "Group", "Group Holdings", "Company", "Limited", "S.A.", "", "", "",
)  # fmt: skip
_SHARE = ("Common Stock", "Ordinary Shares", "Class A Common Stock", "Warrant", "Unit", "American Depositary Shares")
_PLACE_TAIL = ("", "", "", " City", " Springs", " Falls", " Bay", " Heights", " Harbor")
_KINDS = {"adjective": _ADJECTIVE, "noun": _NOUN, "verb": _VERB, "first": _FIRST, "love": _LOVE, "trade": _TRADE}


class Names:
    """Draws names; none has to be new, the combinations are many millions."""

    def __init__(self, phrasing: Phrasing) -> None:
        self.phrasing = phrasing

    def coined(self) -> str:
        """ "Marlenstad": a word of two or three syllables."""
        v = self.phrasing
        middle = v.pick(_MIDDLE) if v.chance(0.3) else ""
        return (v.pick(_HEAD) + middle + v.pick(_TAIL)).capitalize()

    def person(self) -> str:
        v = self.phrasing
        first = v.pick(_FIRST).capitalize()
        last = self.coined()
        if v.chance(0.06):
            return f"{first} {v.pick('ABCDEFGHJKLMNPRSTW')}. {last}"
        if v.chance(0.06):
            return f"{first} {v.pick(_FIRST).capitalize()} {last}"
        if v.chance(0.03):
            return first + v.pick((" de ", " van ", " von ", " del ", " Mc", " O'")) + last
        return f"{first} {last}" + (v.pick((" Jr.", " III")) if v.chance(0.02) else "")

    def place(self) -> str:
        return self.coined() + self.phrasing.pick(_PLACE_TAIL)

    def called(self, template: str) -> str:
        """A name by a template: "The {Adjective} {Noun}", in words by chance; a capital gives them one.

        Raises:
            ValueError: there are no such words.
        """
        return " ".join(Formatter().vformat(self.phrasing.say(template), (), _Words(self)).split())

    def _forms(self, kind: str, **shared: str) -> list[str]:
        """Names of a kind in all their forms.

        Args:
            shared: slots to kinds of words, of which all forms have the same; other slots get a new one each.
        """
        words = _Words(self, **{slot: self.word(of).capitalize() for slot, of in shared.items()})
        return [Formatter().vformat(form, (), words) for form in _FORMS[kind]]

    def film(self) -> str:
        return self.phrasing.pick(self._forms("works", one="adjective", two="adjective", this="noun", that="noun"))

    def song(self) -> str:
        v = self.phrasing
        forms = self._forms("songs", one="adjective", this="noun", do="verb")
        tail = v.pick(_FORMS["tails of songs"]) if v.chance(0.12) else ""
        return v.pick(forms) + tail

    def ticker(self) -> str:
        v = self.phrasing
        return "".join(v.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(v.pick((2, 3, 3, 4, 4, 4, 5))))

    def company(self) -> str:
        """A company on the stock market, as a question names it."""
        v = self.phrasing
        stem = v.pick((self.coined(), f"{v.pick(_ADJECTIVE).capitalize()} {v.pick(_NOUN).capitalize()}", self.coined()))
        words = f"{stem} {v.pick(_TRADE)}" if v.chance(0.75) else stem
        form = v.pick(_FORM)
        share = f" {v.pick(_SHARE)}" if v.chance(0.2) else ""
        name = words if v.chance(0.5) else f"{words} {form}".strip() + share
        # Named nowhere; without it a seed would make other data.
        self.ticker()
        return name

    def word(self, kind: str) -> str:
        return self.phrasing.pick(_KINDS[kind])

    def near(self, name: str) -> str:
        """Another name that shares words with this one, as a search finds it when it does not know the right one."""
        v = self.phrasing
        extra = v.pick((v.pick(_NOUN).capitalize(), v.pick(_ADJECTIVE).capitalize(), self.coined()))
        forms = [
            f"{name} {extra}",
            f"{extra} {name}",
            f"{name}: {extra} {v.pick(_NOUN).capitalize()}",
            f"The {extra} {name}",
            f"{name} {v.pick(('Legacy', 'Revival', 'Story', 'Live', 'Tribute', 'II', 'Returns'))}",
        ]
        words = name.split(" ")
        if len(words) > 1:
            forms += [f"{words[0]} {extra}", f"{extra} {words[-1]}"]
        return v.pick(forms)


class _Words(dict[str, str]):
    """Words by chance for a template's slots, a new one each time but for those that are fixed."""

    def __init__(self, names: Names, **fixed: str) -> None:
        super().__init__(fixed)
        self._names = names

    def __missing__(self, slot: str) -> str:
        names, kind = self._names, slot.lower()
        if kind in ("coined", "person", "place", "song", "ticker", "company"):
            return str(getattr(names, kind)())
        if kind == "lower":
            return names.coined().lower()
        if kind == "sequel":
            return str(names.phrasing.between(2, 4))
        if kind == "year":
            return str(names.phrasing.between(1100, 2022))
        if kind in _KINDS:
            word = names.word(kind)
            return word.capitalize() if slot[0].isupper() else word
        raise ValueError(f"names: there are no words for {{{slot}}}")
