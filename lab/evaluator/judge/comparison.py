"""One gold answer beside one prediction: quantities, names and lists, negations, choices."""

import itertools
import re
from collections.abc import Sequence

from lab.evaluator.judge import reading
from lab.evaluator.judge.agreement import agree
from lab.evaluator.judge.reading import read
from lab.evaluator.judge.text import COMPANY_FORMS, HONORIFICS, Word, negations, segments, set_aside
from services.kit.text.quantities import Quantity

# A gold answer of more words, or with a verb, is a sentence.
PHRASE_WORDS = 6
# An item of a list has at most so many words; longer parts are prose.
ITEM_WORDS = 5

# A sentence with so many words of its own and none of the question's or the gold answer's is about something else.
OFF_TOPIC_WORDS = 3
# A side of a choice is named when more than half of its words are.
SIDE_SHARE = 0.6

_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|did|does|do|won|wins|released|directed|played|plays|born|died|founded|wrote|"
    r"starred|made|became|earned|received|costs?|includes?|outperformed|came|sold|scored|beat)\b"
)
# Besides these, what stands before a bare number makes it part of a name: "Apollo 13".
_PREDICATE = re.compile(
    _VERB.pattern
    + r"|:|\b\w+(?:ed|s)\b(?=\W+(?:\w+\W+){0,3}?[$€£]?\d)|\b(?:rose|fell|ran|lay|stood|went|began|up|down)\b"
)
_ELABORATION = re.compile(
    r"\s+out of\b.*|[,;]?\s+(?:while|whereas|although|though|despite|because|since it|compared (?:to|with))\b.*"
    r"|[,;]\s*(?:with|which|who|whose|where|including|directed by|released|starring|portrayed by|as|in|on|from"
    r"|followed by|making|having|having been|known for|it|he|she|they)\b.*"
    r"|\s+released (?:in|on)\b.*|\s*\([^)]*\)",
    re.IGNORECASE,
)
_QUANTITY_ASKED = re.compile(
    r"\bhow (?:many|much|old|long|tall|high|far|big|large|fast|deep|heavy|wide|often|late|early)\b|\bwhen\b|"
    r"\bwhat (?:year|date|time|day|month|percent|number|amount|age|size|score)|\bwhich (?:year|date|day|month)|"
    r"\bin (?:what|which) year|\b(?:date|birthdate|birthday|price|cost|market cap|capitalization|volume|dividend|ratio|"
    r"p/e|eps|budget|gross|revenue|sales|earnings|profit|percentage|population|height|weight|length|age|score|total|"
    r"number|amount|worth|value|salary|distance|temperature|speed|duration|runtime|count|points|average|market price)\b"
)
_PERSON_ASKED = re.compile(
    r"\bwho(?:se|m)?\b|\b(?:actor|actress|director|singer|author|artist|player|coach|president|composer|"
    r"team|opponent|club|side|rival)s?\b"
)
_PLACE_ASKED = re.compile(
    r"\b(?:where|city|town|capital|place|country|state|location|located|headquarters?|headquartered|birthplace|venue)\b"
)
_NAME_ASKED = re.compile(r"\bwho(?:se|m)?\b|\b(?:title|name)s?\b|\bwhich (?!year|date|day|month)")
_NEGATING = frozenset({"not", "never", "no", "none", "neither", "nor", "nobody", "nothing"})
PERCENT_ASKED = re.compile(r"%|\b(?:percent|percentage|rate|yield|margin|share of|proportion)\b")
_YEAR_ASKED = re.compile(r"\b(?:what|which) year\b|\byear (?:was|did|is|were)\b")
_MONTH_ASKED = re.compile(r"\b(?:what|which) month\b")
_ZERO = re.compile(r"\b(?:none|never|no one|nobody|nothing|not any|zero|no(?= \w))\b")
# What makes a unit likely that the gold answer leaves out.
_DIMENSION_ASKED = {
    "time": re.compile(
        r"\b(?:long|old|ages?|duration|years?|months?|weeks?|days?|hours?|minutes?|seconds?|time|runtime)\b"
    ),
    "length": re.compile(
        r"\b(?:tall|high|height|far|distance|long|length|deep|depth|wide|width|km|kilomet\w+|miles?|feet|foot|met(?:er|re)s?|"
        r"elevation|altitude)\b"
    ),
    "mass": re.compile(r"\b(?:weighs?|weight|heavy|mass|kg|kilograms?|pounds|tons?)\b"),
}
_HEDGE = re.compile(
    r"\beither\b|\bor\b|\bpossibly\b|\bperhaps\b|\bmaybe\b|\bmight (?:be|have)\b|\bi(?:'m| am) not sure\b"
)


class Comparison:
    """One gold answer beside one prediction."""

    def __init__(self, asked: str, gold: str, said: str) -> None:
        self.asked = read(asked)
        self.gold = read(gold)
        self.said = read(said)
        sentence = len(self.gold.words) > PHRASE_WORDS or _VERB.search(gold.lower()) is not None
        core = _ELABORATION.sub("", gold).strip() if sentence or "(" in gold else gold
        self.core = read(core) if core else self.gold
        self.sentence = sentence
        # A number is asked for, and no name beside it.
        self.quantity_asked = _QUANTITY_ASKED.search(asked) is not None and not _NAME_ASKED.search(asked)
        self.percent_asked = PERCENT_ASKED.search(asked) is not None
        self.required = self._required_quantities()
        self.items = self._items()

    def mismatch(self) -> str:
        if choice := self._choice():
            return choice.removeprefix("ok") or self._stray_quantities() or self._swapped()
        return (
            self._hedged()
            or self._negation()
            or self._missing_quantity()
            or self._stray_quantities()
            or self._swapped()
            or self._off_topic()
            or self._missing_item()
            or self._further_item()
        )

    # Quantities.

    def _required_quantities(self) -> list[Quantity]:
        """The core's quantities; of a sentence, those that the question does not hold already."""
        # "Never, although he tried nine times": the nine answers nothing.
        whole = self.core if negations(self.core.text) else self.gold
        quantities = list(self.core.quantities) or list(whole.quantities)
        if not self.sentence:
            return quantities
        new = [item for item in quantities if not any(agree(known, item) for known in self.asked.quantities)]
        hard = [item for item in new if not item.soft]
        if not self.quantity_asked and reading.names(self.core, self.asked):
            # Which or who was asked: a year beside the name elaborates.
            hard = [item for item in hard if not item.aside]
        return hard or ([] if reading.names(self.core, self.asked) else new or quantities)

    def _agree(self, gold: Quantity, said: Quantity) -> bool:
        if gold.bound != said.bound and (gold.bound or said.bound == "high"):
            return False
        if said.kind == "ordinal" and gold.kind == "number" and self.quantity_asked:
            return False
        if said.dimension and not gold.dimension and not self._may_have(said):
            return False
        if agree(gold, said, percent_asked=self.percent_asked):
            return True
        if self._fallen(gold, said):
            return True
        if gold.kind == "date" and said.year and said.kind == "number":
            return _YEAR_ASKED.search(self.asked.text) is not None and gold.date[0] == said.year
        if gold.kind == said.kind == "date" and gold.date[0] and not said.date[0]:
            dated = any(item.year == gold.date[0] for item in self.asked.quantities)
            return dated and gold.date[1:] == said.date[1:]
        if gold.kind == said.kind == "date" and _MONTH_ASKED.search(self.asked.text):
            return gold.date[:2] == said.date[:2] and not said.date[2]
        return False

    def _may_have(self, said: Quantity) -> bool:
        """Whether a number may bear a unit that the gold answer leaves out."""
        asked = _DIMENSION_ASKED.get(said.dimension)
        return asked is None or asked.search(self.asked.text) is not None

    def _fallen(self, gold: Quantity, said: Quantity) -> bool:
        """Whether a minus sign is said in a word: `-2.5%` is `fell 2.5%`."""
        if gold.value >= 0 or said.value < 0 or gold.kind != "number" or said.kind != "number":
            return False
        before = self.said.text[: said.start].lower()
        fell = re.search(r"\b(?:down|fell|fallen|decreased?|declined?|dropped|drop|lost|loss)\b[^.,;]{0,20}$", before)
        positive = Quantity("number", 0, 0, -gold.value, gold.step, gold.dimension, gold.factor)
        return fell is not None and agree(positive, said)

    def _missing_quantity(self) -> str:
        said = self.said.quantities
        place = set_aside(self.said.text)
        asserted = [item for item in said if place[item.start : item.end].strip()]
        for gold in self.required:
            if any(self._agree(gold, item) for item in asserted):
                continue
            if gold.value == 0 and gold.kind == "number" and _ZERO.search(self.said.text.lower()) and not said:
                continue
            return f"lacks {reading.shown(self.core if gold in self.core.quantities else self.gold, gold)}"
        return ""

    def _stray_quantities(self) -> str:
        known = (*self.gold.quantities, *self.asked.quantities)
        for item in self.said.quantities:
            if item.soft or any(self._agree(gold, item) for gold in known):
                continue
            if any(item.kind == "date" and other.kind == "date" and agree(other, item) for other in known):
                continue
            if self._contextual(item):
                continue
            counted = any(not other.soft for other in self.core.quantities)
            if not item.value and item.kind == "number" and not counted and negations(self.core.text):
                continue
            return f"another number: {reading.shown(self.said, item)}"
        return self._doubled()

    def _doubled(self) -> str:
        """A gold number said in the place of another one."""
        gold = [item for item in self.gold.quantities if not item.soft]
        said = [item for item in self.said.quantities if not item.soft]
        if len(gold) < 2 or len(said) < 2:
            return ""
        for item in gold:
            same = [other for other in gold if self._agree(other, item)]
            times = sum(self._agree(item, other) for other in said)
            spare = times - len(same) - sum(self._agree(item, other) for other in self.asked.quantities)
            if spare > 0 and any(not any(self._agree(one, other) for other in said) for one in gold):
                return f"{reading.shown(self.gold, item)} twice"
        return ""

    def _contextual(self, item: Quantity) -> bool:
        """Whether a number of its own may stand beside the answer: a date beside a price, a year beside a title."""
        if not self.gold.quantities:
            # Names were asked for: counting words, and years or dates in brackets or after a preposition, are prose.
            return item.spelled or (item.aside and (item.kind == "date" or bool(item.year)))
        gold_dates = any(other.kind == "date" or other.year for other in self.gold.quantities)
        return item.kind == "date" and item.aside and not gold_dates and bool(item.date[2])

    def _swapped(self) -> str:
        """Whether the right numbers stand with the wrong things, or in another order where order tells."""
        pairs = [
            (gold, next((item for item in self.said.quantities if self._agree(gold, item)), None))
            for gold in self.gold.quantities
        ]
        found = [(gold, item) for gold, item in pairs if item is not None]
        if len(found) < 2 or len({item.start for _, item in found}) < len(found):
            return ""
        gold_heads = [reading.neighbours(self.gold, gold) for gold, _ in found]
        said_heads = [reading.neighbours(self.said, item) for _, item in found]
        told = False
        for index, heads in enumerate(said_heads):
            others = set().union(*(other for place, other in enumerate(gold_heads) if place != index))
            if heads & (others - gold_heads[index]) and not heads & gold_heads[index]:
                return "numbers of one thing with another"
            told |= bool(heads & gold_heads[index] - others)
        ordered = [item.start for _, item in found] == sorted(item.start for _, item in found)
        if ordered or told or self._is_list_of_quantities():
            return ""
        return "numbers in another order"

    def _is_list_of_quantities(self) -> bool:
        between = [
            self.gold.text[one.end : two.start].strip().lower() for one, two in itertools.pairwise(self.gold.quantities)
        ]
        return all(text in (",", ", and", "and", "&", ";") for text in between)

    def _off_topic(self) -> str:
        """Whether the number stands in a name or in a sentence about something else."""
        if not (self.quantity_asked and self.required):
            return ""
        known = self.gold.keys | self.asked.keys
        new = [word for word in self.said.content if word.key not in known]
        if not new:
            return ""
        if len(new) >= OFF_TOPIC_WORDS and not any(word.key in known for word in self.said.content):
            return "about something else"
        first = min((item.start for item in self.said.quantities), default=0)
        before = [word for word in new if word.start < first]
        if (
            len(before) == len(new)
            and len(self.said.content) == len(new)
            and not _PREDICATE.search(self.said.text.lower())
        ):
            return "a number in a name"
        return ""

    # Names and lists.

    def _items(self) -> list[list[Word]]:
        """What must be named: the core's parts, each without what the question says already."""
        if self.quantity_asked and self.required:
            return []
        parts = reading.parts(self.core)
        if not self.quantity_asked:
            parts = reading.parts_with_numbers(self.core, self.required)
        known = {word.key for word in self.asked.words} | HONORIFICS | COMPANY_FORMS
        if self.sentence:
            new = [[word for word in part if word.key not in known] for part in parts]
            new = [part for part in ([word for word in part if word.key not in _NEGATING] for part in new) if part]
            if new:
                return new
            return [] if self.required or negations(self.core.text) else parts
        named = [[word for word in part if word.key not in HONORIFICS | COMPANY_FORMS] for part in parts]
        named = [part for part in named if part]
        repeated = {key for key in self.asked.keys if sum(key in {word.key for word in part} for part in named) >= 2}
        # "Lake Alba, Lake Borea" for "which lakes": the kind need not be said again.
        named = [[word for word in part if word.key not in repeated] or part for part in named]
        return named or ([list(self.core.words)] if self.core.words and not self.required else [])

    def _missing_item(self) -> str:
        if not self.items and not self.required and not negations(self.core.text):
            return "nothing to compare"
        place = set_aside(self.said.text)
        words = [word for word in reading.attached(self.said).words if place[word.start : word.end].strip()]
        for item in self.items:
            if not self._named(item, words):
                return f"lacks {self.core.text[item[0].start : item[-1].end]!r}"
        return ""

    def _named(self, item: Sequence[Word], words: Sequence[Word]) -> bool:
        keys = [word.key for word in item]
        if not any(word.content for word in item):
            # Nothing but small words, as in titles: they must be all that is said.
            return [word.key for word in words][-len(keys) :] == keys and len(words) <= len(keys) + 3
        span = sum(item[0].start <= word.start <= item[-1].start for word in self.core.words)
        if (
            reading.within(keys, words, span)
            or reading.joined(keys, words)
            or reading.acronym(item, words, self.core.words)
        ):
            return True
        if len(keys) < 2 or not _PERSON_ASKED.search(self.asked.text):
            return False
        if keys[-1] in ("jr", "sr"):
            return self._named(item[:-1], words) and not {"jr", "sr"} & {word.key for word in words}
        if len(keys) > 2 and reading.within([keys[0], keys[-1]], words) and len(keys) <= 4:
            return True
        if len(keys[0]) <= 2 and len(item) > 1:
            # An initial may be left out.
            return (
                self._named(item[1:], words) if len(keys) > 2 else reading.within(keys[1:], words) and len(words) <= 2
            )
        said = [word for word in words if word.content]
        return len(keys) <= 3 and [word.key for word in said] == [keys[-1]]

    def _further_item(self) -> str:
        """Names that neither the gold answer nor the question holds, in the prediction's list or beside its answer."""
        known = self.gold.keys | self.asked.keys | HONORIFICS | COMPANY_FORMS | self._spelled_out()
        echo = bool(self.items) and all(word.key in self.asked.keys for item in self.items for word in item)
        if echo and not self.sentence:
            extra = [word for word in self.said.content if word.key not in known]
            return f"also {extra[0].key!r}" if extra else ""
        if self.quantity_asked and self.required:
            return ""
        spans = segments(self.said.text)
        cased = any(word.capital for word in self.said.words[1:])
        place_asked = _PLACE_ASKED.search(self.asked.text) is not None
        for index, (start, end) in enumerate(spans):
            part = [word for word in self.said.words if start <= word.start < end]
            content = [word for word in part if word.content]
            new = [word for word in content if word.key not in known]
            if not new or len(spans) == 1:
                continue
            if index and place_asked and self.said.text[:start].rstrip().endswith(","):
                # "Paris, France".
                continue
            if any(word.key in self.gold.keys - self.asked.keys for word in content):
                continue
            names = all(word.capital for word in content) if cased else len(part) == len(content)
            if names and len(part) <= ITEM_WORDS:
                return f"also {self.said.text[start:end].strip(' .')!r}"
        rivals = reading.rival_names(self.said, known) if cased else ""
        return f"also {rivals!r}" if rivals else ""

    def _spelled_out(self) -> set[str]:
        """The words of a prediction that spell out the gold answer's acronym."""
        runs = (self.said.content, list(self.said.words))
        return {
            word.key
            for item in self.items
            if len(item) == 1
            for run in runs
            for word in reading.expansion(item[0].key, run)
        }

    # Negation, hedging, choices.

    def _negation(self) -> str:
        said, gold, asked = (len(negations(text)) for text in (self.said.text, self.gold.text, self.asked.text))
        core = len(negations(self.core.text))
        zero = any(item.value == 0 and item.kind == "number" for item in self.required)
        if core and not said:
            has_zero = any(item.value == 0 and item.kind == "number" for item in self.said.quantities)
            return "" if has_zero and not self.core.quantities else "lacks the negation"
        if said > max(gold, core) + asked and not (zero and said == 1):
            return "a negation"
        return ""

    def _hedged(self) -> str:
        hedge = _HEDGE.search(self.said.text.lower())
        if hedge and not _HEDGE.search(self.gold.text.lower()):
            word = hedge[0]
            if word == "or" and " or " in self.asked.text:
                return ""
            return f"hedged: {word!r}"
        return ""

    def _choice(self) -> str:
        """For "X or Y": "ok" when gold answer and prediction name the same side first, "" when there is no choice."""
        sides = reading.sides(self.asked.text)
        if not sides:
            return ""
        gold_side = reading.first_side(self.core.text, sides)
        if gold_side is None or (self.quantity_asked and self.required and not self.sentence):
            return ""
        if negations(self.said.text) and not negations(self.gold.text):
            return "a negation"
        leading = re.sub(r"^\W*(?:compared (?:to|with)|unlike|while|whereas)[^,]*,", "", self.said.text.lower())
        said_side = reading.first_side(leading, sides)
        if said_side is None or not self._names_side(sides[said_side]):
            return "names neither side"
        return "ok" if said_side == gold_side else "names the other side"

    def _names_side(self, side: set[str]) -> bool:
        named = side & reading.side_keys(self.said.text)
        return len(named) >= SIDE_SHARE * len(side) or (len(self.said.content) == 1 and bool(named & self.said.keys))
