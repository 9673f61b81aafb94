"""One gold answer beside one prediction: quantities, names and lists, negations, choices."""

import itertools
import re
from collections.abc import Sequence

from lab.evaluator.judge import reading
from lab.evaluator.judge.agreement import agree
from lab.evaluator.judge.reading import read
from lab.evaluator.judge.text import NAME_AFFIXES, Word, negations, segments, without_contrasts
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
    """One gold answer beside one prediction, all three texts cleaned.

    Attributes:
        core: the gold answer without elaborations.
        sentence: whether the gold answer is a sentence.
        required: quantities that the prediction must state.
        items: words of each name or list item that the prediction must state.
    """

    def __init__(self, question: str, gold: str, prediction: str) -> None:
        self.question = read(question)
        self.gold = read(gold)
        self.prediction = read(prediction)
        self.sentence = len(self.gold.words) > PHRASE_WORDS or _VERB.search(gold.lower()) is not None
        core = _ELABORATION.sub("", gold).strip() if self.sentence or "(" in gold else gold
        self.core = read(core) if core else self.gold
        # A question for a name beside a number counts as one for a name.
        self.quantity_asked = _QUANTITY_ASKED.search(question) is not None and not _NAME_ASKED.search(question)
        self.percent_asked = PERCENT_ASKED.search(question) is not None
        self.required = self._required_quantities()
        self.items = self._items()

    def mismatch(self) -> str:
        """In what the prediction differs from the gold answer; empty when it does not."""
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
        new = [item for item in quantities if not any(agree(other, item) for other in self.question.quantities)]
        hard = [item for item in new if not item.soft]
        if not self.quantity_asked and reading.new_words(self.core, self.question):
            # The question is which or who: a year beside the name elaborates.
            hard = [item for item in hard if not item.aside]
        return hard or ([] if reading.new_words(self.core, self.question) else new or quantities)

    def _agree(self, gold: Quantity, other: Quantity) -> bool:
        """Whether a quantity agrees with the gold answer's, in the light of the question."""
        if gold.bound != other.bound and (gold.bound or other.bound == "high"):
            return False
        if other.kind == "ordinal" and gold.kind == "number" and self.quantity_asked:
            return False
        if other.dimension and not gold.dimension and not self._unit_expected(other.dimension):
            return False
        if agree(gold, other, percent_asked=self.percent_asked) or self._fallen(gold, other):
            return True
        if gold.kind == "date" and other.year and other.kind == "number":
            return _YEAR_ASKED.search(self.question.text) is not None and gold.date[0] == other.year
        if gold.kind == other.kind == "date" and gold.date[0] and not other.date[0]:
            dated = any(item.year == gold.date[0] for item in self.question.quantities)
            return dated and gold.date[1:] == other.date[1:]
        if gold.kind == other.kind == "date" and _MONTH_ASKED.search(self.question.text):
            return gold.date[:2] == other.date[:2] and not other.date[2]
        return False

    def _unit_expected(self, dimension: str) -> bool:
        """Whether the question lets a number bear a unit that the gold answer leaves out."""
        pattern = _DIMENSION_ASKED.get(dimension)
        return pattern is None or pattern.search(self.question.text) is not None

    def _fallen(self, gold: Quantity, other: Quantity) -> bool:
        """Whether a word of the prediction stands for a minus sign: `-2.5%` is `fell 2.5%`."""
        if gold.value >= 0 or other.value < 0 or gold.kind != "number" or other.kind != "number":
            return False
        before = self.prediction.text[: other.start].lower()
        fell = re.search(r"\b(?:down|fell|fallen|decreased?|declined?|dropped|drop|lost|loss)\b[^.,;]{0,20}$", before)
        positive = Quantity("number", 0, 0, -gold.value, gold.step, gold.dimension, gold.factor)
        return fell is not None and agree(positive, other)

    def _missing_quantity(self) -> str:
        quantities = self.prediction.quantities
        assertion = without_contrasts(self.prediction.text)
        asserted = [item for item in quantities if assertion[item.start : item.end].strip()]
        zero = not quantities and _ZERO.search(self.prediction.text.lower()) is not None
        for gold in self.required:
            if any(self._agree(gold, item) for item in asserted):
                continue
            if zero and gold.value == 0 and gold.kind == "number":
                continue
            return f"lacks {reading.written(self.core if gold in self.core.quantities else self.gold, gold)}"
        return ""

    def _stray_quantities(self) -> str:
        expected = (*self.gold.quantities, *self.question.quantities)
        # "None" says zero in a word.
        zero = all(other.soft for other in self.core.quantities) and bool(negations(self.core.text))
        for item in self.prediction.quantities:
            if item.soft or any(self._agree(gold, item) for gold in expected):
                continue
            if any(item.kind == "date" and other.kind == "date" and agree(other, item) for other in expected):
                continue
            if self._contextual(item) or (zero and not item.value and item.kind == "number"):
                continue
            return f"another number: {reading.written(self.prediction, item)}"
        return self._doubled()

    def _doubled(self) -> str:
        """Whether a gold number stands in the place of another one."""
        gold = [item for item in self.gold.quantities if not item.soft]
        predicted = [item for item in self.prediction.quantities if not item.soft]
        if len(gold) < 2 or len(predicted) < 2:
            return ""
        if all(any(self._agree(item, other) for other in predicted) for item in gold):
            return ""
        for item in gold:
            occurrences = sum(self._agree(item, other) for other in predicted)
            expected = sum(self._agree(other, item) for other in gold)
            expected += sum(self._agree(item, other) for other in self.question.quantities)
            if occurrences > expected:
                return f"{reading.written(self.gold, item)} twice"
        return ""

    def _contextual(self, item: Quantity) -> bool:
        """Whether an unexpected number may stand beside the answer: a date beside a price, a year beside a title."""
        if not self.gold.quantities:
            # The answer is a name: counting words, and years or dates in brackets or after a preposition, are prose.
            return item.spelled or (item.aside and (item.kind == "date" or bool(item.year)))
        gold_dates = any(other.kind == "date" or other.year for other in self.gold.quantities)
        return item.kind == "date" and item.aside and not gold_dates and bool(item.date[2])

    def _swapped(self) -> str:
        """Whether the right numbers stand with the wrong things, or in another order where order tells."""
        candidates = [
            (gold, next((item for item in self.prediction.quantities if self._agree(gold, item)), None))
            for gold in self.gold.quantities
        ]
        matches = [(gold, item) for gold, item in candidates if item is not None]
        places = [item.start for _, item in matches]
        if len(matches) < 2 or len(set(places)) < len(places):
            return ""
        gold_heads = [reading.neighbours(self.gold, gold) for gold, _ in matches]
        heads = [reading.neighbours(self.prediction, item) for _, item in matches]
        distinct = False
        for index, (own, head) in enumerate(zip(gold_heads, heads, strict=True)):
            others = set().union(*gold_heads[:index], *gold_heads[index + 1 :])
            if head & (others - own) and not head & own:
                return "numbers of one thing with another"
            distinct |= bool(head & own - others)
        if places == sorted(places) or distinct or self._is_list_of_quantities():
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
        content = self.prediction.content
        expected = self.gold.keys | self.question.keys
        if not content or any(word.key in expected for word in content):
            return ""
        if len(content) >= OFF_TOPIC_WORDS:
            return "about something else"
        first = min((item.start for item in self.prediction.quantities), default=0)
        name = all(word.start < first for word in content) and not _PREDICATE.search(self.prediction.text.lower())
        return "a number in a name" if name else ""

    # Names and lists.

    def _items(self) -> list[list[Word]]:
        """What must be named: the core's parts, each without the words of the question."""
        if self.quantity_asked and self.required:
            return []
        if self.quantity_asked:
            parts = reading.parts(self.core)
        else:
            parts = reading.parts_with_numbers(self.core, self.required)
        if self.sentence:
            if new := reading.without(parts, self.question.keys | NAME_AFFIXES | _NEGATING):
                return new
            return [] if self.required or negations(self.core.text) else parts
        names = reading.without(parts, NAME_AFFIXES)
        repeated = {key for key in self.question.keys if sum(key in {word.key for word in part} for part in names) >= 2}
        # "Lake Alba, Lake Borea" for "which lakes": the kind need not be repeated.
        names = [[word for word in part if word.key not in repeated] or part for part in names]
        return names or ([list(self.core.words)] if self.core.words and not self.required else [])

    def _missing_item(self) -> str:
        if not self.items and not self.required and not negations(self.core.text):
            return "nothing to compare"
        assertion = without_contrasts(self.prediction.text)
        words = [word for word in reading.attached(self.prediction).words if assertion[word.start : word.end].strip()]
        for item in self.items:
            if not self._named(item, words):
                return f"lacks {self.core.text[item[0].start : item[-1].end]!r}"
        return ""

    def _named(self, item: Sequence[Word], words: Sequence[Word]) -> bool:
        """Whether the words name the item, under any form of its name."""
        keys = [word.key for word in item]
        if not any(word.content for word in item):
            # A title of small words alone must be the whole prediction.
            return [word.key for word in words][-len(keys) :] == keys and len(words) <= len(keys) + 3
        span = sum(item[0].start <= word.start <= item[-1].start for word in self.core.words)
        if (
            reading.near(keys, words, span)
            or reading.joined(keys, words)
            or reading.acronym(item, words, self.core.words)
        ):
            return True
        if len(keys) < 2 or not _PERSON_ASKED.search(self.question.text):
            return False
        if keys[-1] in ("jr", "sr"):
            return self._named(item[:-1], words) and not {"jr", "sr"} & {word.key for word in words}
        if len(keys) > 2 and reading.near([keys[0], keys[-1]], words) and len(keys) <= 4:
            return True
        if len(keys[0]) <= 2 and len(item) > 1:
            # An initial may be left out.
            return self._named(item[1:], words) if len(keys) > 2 else reading.near(keys[1:], words) and len(words) <= 2
        return len(keys) <= 3 and [word.key for word in words if word.content] == [keys[-1]]

    def _further_item(self) -> str:
        """Names that neither the gold answer nor the question holds, in the prediction's list or beside its answer."""
        expected = self.gold.keys | self.question.keys | NAME_AFFIXES | self._spelled_out()
        echo = bool(self.items) and all(word.key in self.question.keys for item in self.items for word in item)
        if echo and not self.sentence:
            extra = next((word.key for word in self.prediction.content if word.key not in expected), "")
            return f"also {extra!r}" if extra else ""
        if self.quantity_asked and self.required:
            return ""
        spans = segments(self.prediction.text)
        cased = any(word.capital for word in self.prediction.words[1:])
        place_asked = _PLACE_ASKED.search(self.question.text) is not None
        for index, (start, end) in enumerate(spans):
            part = [word for word in self.prediction.words if start <= word.start < end]
            content = [word for word in part if word.content]
            if len(spans) == 1 or all(word.key in expected for word in content):
                continue
            if index and place_asked and self.prediction.text[:start].rstrip().endswith(","):
                # "Paris, France".
                continue
            if any(word.key in self.gold.keys - self.question.keys for word in content):
                continue
            names = all(word.capital for word in content) if cased else len(part) == len(content)
            if names and len(part) <= ITEM_WORDS:
                return f"also {self.prediction.text[start:end].strip(' .')!r}"
        rivals = reading.rival_names(self.prediction, expected) if cased else ""
        return f"also {rivals!r}" if rivals else ""

    def _spelled_out(self) -> set[str]:
        """The words of a prediction that spell out the gold answer's acronym."""
        runs = (self.prediction.content, list(self.prediction.words))
        return {
            word.key
            for item in self.items
            if len(item) == 1
            for run in runs
            for word in reading.expansion(item[0].key, run)
        }

    # Negation, hedging, choices.

    def _negation(self) -> str:
        texts = (self.prediction.text, self.gold.text, self.core.text, self.question.text)
        predicted, gold, core, question = (len(negations(text)) for text in texts)
        if core and not predicted:
            return "" if _has_zero(self.prediction.quantities) and not self.core.quantities else "lacks the negation"
        if predicted > max(gold, core) + question and not (predicted == 1 and _has_zero(self.required)):
            return "a negation"
        return ""

    def _hedged(self) -> str:
        hedge = _HEDGE.search(self.prediction.text.lower())
        if not hedge or _HEDGE.search(self.gold.text.lower()) or (hedge[0] == "or" and " or " in self.question.text):
            return ""
        return f"hedged: {hedge[0]!r}"

    def _choice(self) -> str:
        """For "X or Y": "ok" when gold answer and prediction name the same side first, "" when there is no choice."""
        sides = reading.sides(self.question.text)
        if not sides:
            return ""
        gold_side = reading.first_side(self.core.text, sides)
        if gold_side is None or (self.quantity_asked and self.required and not self.sentence):
            return ""
        if negations(self.prediction.text) and not negations(self.gold.text):
            return "a negation"
        leading = re.sub(r"^\W*(?:compared (?:to|with)|unlike|while|whereas)[^,]*,", "", self.prediction.text.lower())
        side = reading.first_side(leading, sides)
        if side is None or not self._names_side(sides[side]):
            return "names neither side"
        return "ok" if side == gold_side else "names the other side"

    def _names_side(self, side: set[str]) -> bool:
        named = side & reading.side_keys(self.prediction.text)
        alone = len(self.prediction.content) == 1 and bool(named & self.prediction.keys)
        return alone or len(named) >= SIDE_SHARE * len(side)


def _has_zero(quantities: Sequence[Quantity]) -> bool:
    return any(item.value == 0 and item.kind == "number" for item in quantities)
