"""The judge `rules`: strict, offline, the same everywhere. Where it cannot tell, it says wrong.

A prediction is right when it says what some gold answer says: the same polarity for yes and no, every quantity of the
gold answer and no other, every name or list item and no further one, the same number of negations. A gold answer
that is a sentence is first cut to its core, and what it repeats of the question is not asked for again.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lab.evaluator.judge import protocol
from lab.evaluator.judge.agreement import agree
from lab.evaluator.judge.text import (
    COMPANY_FORMS,
    HONORIFICS,
    Word,
    clean,
    key_of,
    negations,
    segments,
    set_aside,
    words_of,
)
from lab.evaluator.judge.verdict import Case, Verdict
from services.kit.text.quantities import Quantity, find

NAME = "rules"

# Longer texts are no short answers; what is compared takes time with the square of it.
MAX_CHARS = 3_000
# Words that stand between the words of one name, at most.
GAP_WORDS = 4
# A gold answer of more words, or with a verb, is a sentence.
PHRASE_WORDS = 6
# An item of a list has at most so many words; longer parts are prose.
ITEM_WORDS = 5

# A sentence with so many words of its own and none of the question's or the gold answer's is about something else.
OFF_TOPIC_WORDS = 3
# A side of a choice is named when more than half of its words are.
SIDE_SHARE = 0.6

_YES = frozenset({"yes", "yeah", "yep", "correct", "true", "affirmative", "indeed"})
_NO = frozenset({"no", "nope", "false", "incorrect", "negative"})
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
_LEAD_IN = re.compile(
    r"^\W*(?:(?:the\s+)?(?:correct\s+|final\s+|short\s+)?answer(?:\s+to\s+(?:the|this)\s+question)?\s*(?:is|:)|"
    r"it(?:'s| is| was| would be)\b|(?:that|this)(?:'s| is| was| would be)\b|they (?:are|were)\b|"
    r"(?:he|she) (?:is|was)\b|"
    r"(?:based on|according to)[^,]*,|sure[,!.]|certainly[,!.])\s*",
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
_LANGUAGE_ASKED = re.compile(r"\blanguages?\b")
_NAME_ASKED = re.compile(r"\bwho(?:se|m)?\b|\b(?:title|name)s?\b|\bwhich (?!year|date|day|month)")
_NEGATING = frozenset({"not", "never", "no", "none", "neither", "nor", "nobody", "nothing"})
_PERCENT_ASKED = re.compile(r"%|\b(?:percent|percentage|rate|yield|margin|share of|proportion)\b")
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
_LANGUAGE_CODES = (
    "en:english fr:french de:german es:spanish it:italian ja:japanese ko:korean zh:chinese cn:chinese hi:hindi "
    "ru:russian pt:portuguese ar:arabic sv:swedish da:danish no:norwegian nl:dutch pl:polish tr:turkish fi:finnish "
    "el:greek he:hebrew th:thai cs:czech hu:hungarian ro:romanian id:indonesian vi:vietnamese fa:persian uk:ukrainian "
    "ta:tamil te:telugu ml:malayalam bn:bengali"
)
_LANGUAGES = dict(pair.split(":") for pair in _LANGUAGE_CODES.split())
_SIDE_BREAK = re.compile(
    r"[,?:;]|\b(?:which|who|what|between|than|has|have|had|is|was|are|were|did|does|do|come|came|company|movie|film)\b"
)
_OR = re.compile(r"\s+or\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text taken apart: its words outside quantities, and its quantities."""

    text: str
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]

    @property
    def content(self) -> list[Word]:
        return [word for word in self.words if word.content]

    @property
    def keys(self) -> set[str]:
        return {word.key for word in self.words}


def read(text: str) -> Reading:
    """Take a cleaned text apart."""
    quantities = find(text)
    masked = text
    for quantity in quantities:
        masked = masked[: quantity.start] + " " * (quantity.end - quantity.start) + masked[quantity.end :]
    return Reading(text, tuple(words_of(masked)), tuple(quantities))


def judge(case: Case) -> Verdict:
    """The verdict of protocol and rules: right when the prediction says what one of the gold answers says."""
    decided = protocol.decide(case)
    if decided:
        return decided
    reason = "no gold answer"
    for gold in case.gold:
        reason = mismatch(case.question, gold, case.prediction)
        if not reason:
            return Verdict("right", NAME, "says what the gold answer says")
    return Verdict("wrong", NAME, reason)


def mismatch(question: str, gold: str, prediction: str) -> str:
    """In what the prediction differs from the gold answer, in a few words; empty when it does not."""
    if len(gold) > MAX_CHARS or len(prediction) > MAX_CHARS:
        return "too long to compare"
    asked = clean(question[:MAX_CHARS]).lower()
    gold_text, said_text = clean(gold), clean(prediction)
    if not protocol.bare(said_text):
        return "no words"
    for _ in range(2):
        said_text = _LEAD_IN.sub("", said_text) or said_text
    polarity = _polarity(gold_text)
    if polarity:
        return _polar_mismatch(asked, gold_text, said_text, polarity)
    if _LANGUAGE_ASKED.search(asked):
        gold_text, said_text = _language(gold_text), _language(said_text)
    if protocol.bare(gold_text) == protocol.bare(said_text):
        return ""
    return _Comparison(asked, gold_text, said_text).mismatch()


def _polarity(text: str) -> str:
    """yes, no, or nothing, by the first word alone."""
    first = re.match(r"\W*([a-z]+)(?=\W|$)", text.lower())
    word = first[1] if first else ""
    if word in _YES:
        return "yes"
    # "No" may begin a title or a refusal to name: only alone, or before a comma, does it answer.
    plain_no = re.match(r"\W*(?:no|nope|false|incorrect)\s*(?:[,.;:!-]|$)", text.lower())
    return "no" if plain_no else ""


def _polar_mismatch(asked: str, gold: str, said: str, polarity: str) -> str:
    first = re.match(r"\W*([a-z]+)", said.lower())
    word = first[1] if first else ""
    answered = "yes" if word in _YES else "no" if word in _NO else ""
    if not answered:
        return "neither yes nor no"
    other = _NO if answered == "yes" else _YES
    if answered != polarity:
        return "yes and no differ"
    if re.match(rf"\W*{word}\W+(?:and|or|but)\s+(?:{'|'.join(other)})\b", said.lower()):
        return "yes and no at once"
    # "Yes, it is not": the sentence takes back what the word says.
    clause = re.match(r"\W*yes\W+(?:it|he|she|they|that|this|there)\s+[^,.;]*", said.lower())
    if answered == "yes" and clause and negations(clause[0]) and not negations(gold):
        return "yes and no at once"
    gold_read, said_read = read(gold), read(said)
    if gold_read.quantities:
        known = (*gold_read.quantities, *find(asked))
        if stray := _stray(said_read.quantities, known, asked):
            return f"another number: {_shown(said_read, stray)}"
    return ""


def _language(text: str) -> str:
    return re.sub(r"^\W*([a-z]{2})\W*$", lambda match: _LANGUAGES.get(match[1], match[1]), text.lower())


class _Comparison:
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
        self.percent_asked = _PERCENT_ASKED.search(asked) is not None
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
        if not self.quantity_asked and _names(self.core, self.asked):
            # Which or who was asked: a year beside the name elaborates.
            hard = [item for item in hard if not item.aside]
        return hard or ([] if _names(self.core, self.asked) else new or quantities)

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
            return f"lacks {_shown(self.core if gold in self.core.quantities else self.gold, gold)}"
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
            return f"another number: {_shown(self.said, item)}"
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
                return f"{_shown(self.gold, item)} twice"
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
        gold_heads = [_neighbours(self.gold, gold) for gold, _ in found]
        said_heads = [_neighbours(self.said, item) for _, item in found]
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

    def _attached(self, reading: Reading) -> Reading:
        """The reading with the numbers that stand right beside a word as words, `#3`: parts of names."""
        numbers = [
            Word(f"#{item.value.normalize():f}", item.start, item.end, capital=False)
            for item in reading.quantities
            if item.kind in ("number", "ordinal")
        ]
        return Reading(reading.text, tuple(sorted((*reading.words, *numbers), key=lambda word: word.start)), ())

    def _items(self) -> list[list[Word]]:
        """What must be named: the core's parts, each without what the question says already."""
        if self.quantity_asked and self.required:
            return []
        parts = _parts(self.core)
        if not self.quantity_asked:
            parts = _parts_with_numbers(self.core, self._attached(self.core), self.required)
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
        words = [word for word in self._attached(self.said).words if place[word.start : word.end].strip()]
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
        if _within(keys, words, span) or _joined(keys, words) or _acronym(item, words, self.core.words):
            return True
        if len(keys) < 2 or not _PERSON_ASKED.search(self.asked.text):
            return False
        if keys[-1] in ("jr", "sr"):
            return self._named(item[:-1], words) and not {"jr", "sr"} & {word.key for word in words}
        if len(keys) > 2 and _within([keys[0], keys[-1]], words) and len(keys) <= 4:
            return True
        if len(keys[0]) <= 2 and len(item) > 1:
            # An initial may be left out.
            return self._named(item[1:], words) if len(keys) > 2 else _within(keys[1:], words) and len(words) <= 2
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
        rivals = _rival_names(self.said, known) if cased else ""
        return f"also {rivals!r}" if rivals else ""

    def _spelled_out(self) -> set[str]:
        """The words of a prediction that spell out the gold answer's acronym."""
        runs = (self.said.content, list(self.said.words))
        return {
            word.key for item in self.items if len(item) == 1 for run in runs for word in _expansion(item[0].key, run)
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
        sides = _sides(self.asked.text)
        if not sides:
            return ""
        gold_side = _first_side(self.core.text, sides)
        if gold_side is None or (self.quantity_asked and self.required and not self.sentence):
            return ""
        if negations(self.said.text) and not negations(self.gold.text):
            return "a negation"
        leading = re.sub(r"^\W*(?:compared (?:to|with)|unlike|while|whereas)[^,]*,", "", self.said.text.lower())
        said_side = _first_side(leading, sides)
        if said_side is None or not self._names_side(sides[said_side]):
            return "names neither side"
        return "ok" if said_side == gold_side else "names the other side"

    def _names_side(self, side: set[str]) -> bool:
        named = side & _side_keys(self.said.text)
        return len(named) >= SIDE_SHARE * len(side) or (len(self.said.content) == 1 and bool(named & self.said.keys))


def _side_keys(text: str) -> set[str]:
    reading = read(text)
    return {word.key for word in reading.content} | {f"#{item.value}" for item in reading.quantities}


def _sides(asked: str) -> tuple[set[str], set[str]] | None:
    """The distinguishing words of a question's two alternatives."""
    matches = list(_OR.finditer(asked))
    if not matches:
        return None
    match = matches[-1]
    left = _SIDE_BREAK.split(asked[: match.start()].rstrip(" ,"))[-1]
    right = _SIDE_BREAK.split(asked[match.end() :])[0]
    one, two = (_side_keys(text) for text in (left, right))
    one, two = one - two, two - one
    return (one, two) if one and two and max(len(one), len(two)) <= 8 else None


def _first_side(text: str, sides: tuple[set[str], set[str]]) -> int | None:
    """Which side a text names first; None when neither, or both at once."""
    reading = read(text)
    marks = [(word.start, word.key) for word in reading.words]
    marks += [(item.start, f"#{item.value}") for item in reading.quantities]
    places = [[place for place, key in sorted(marks) if key in side] for side in sides]
    if re.match(r"\W*(?:both|neither|equal|same)\b", text.lower()):
        return None
    if not places[0] or not places[1]:
        return 0 if places[0] else 1 if places[1] else None
    if re.search(r"\b(?:and|&|or)\b", text[min(places[0][0], places[1][0]) : max(places[0][0], places[1][0])].lower()):
        return None
    return 0 if places[0][0] < places[1][0] else 1


def _parts(reading: Reading) -> list[list[Word]]:
    parts = [
        [word for word in reading.words if start <= word.start < end and word.content]
        for start, end in segments(reading.text)
    ]
    return [part for part in parts if part]


def _parts_with_numbers(reading: Reading, attached: Reading, required: Sequence[Quantity]) -> list[list[Word]]:
    """As `_parts`, with the required numbers that stand right behind or before a word."""
    starts = {item.start for item in required}
    kept = [
        word
        for index, word in enumerate(attached.words)
        if not word.key.startswith("#")
        or (word.start in starts and any(_touches(attached, index, near) for near in (index - 1, index + 1)))
    ]
    parts = _parts(Reading(reading.text, tuple(kept), ()))
    # A number alone is compared as a quantity.
    return [part for part in parts if any(not word.key.startswith("#") for word in part)]


def _touches(reading: Reading, index: int, near: int) -> bool:
    if not 0 <= near < len(reading.words):
        return False
    one, two = sorted((reading.words[index], reading.words[near]), key=lambda word: word.start)
    other = reading.words[near]
    return other.content and not other.key.startswith("#") and not reading.text[one.end : two.start].strip(" :")


def _names(reading: Reading, asked: Reading) -> list[Word]:
    """Content words that the question does not hold."""
    return [word for word in reading.content if word.key not in asked.keys]


def _within(keys: Sequence[str], words: Sequence[Word], span: int = 0) -> bool:
    """Whether all keys stand near each other, in any order; `span` is how far apart they stand in the gold answer."""
    wanted = set(keys)
    reach = max(len(keys), span) + GAP_WORDS
    return any(
        word.key in wanted and wanted <= {other.key for other in words[index : index + reach]}
        for index, word in enumerate(words)
    )


def _joined(keys: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether the same letters stand there, split into words otherwise: Spider-Man, Spiderman."""
    wanted = "".join(keys)
    for index in range(len(words)):
        joined = ""
        for word in words[index:]:
            joined += word.key
            if key_of(joined) == key_of(wanted):
                return True
            if len(joined) > len(wanted):
                break
    return False


def _acronym(item: Sequence[Word], words: Sequence[Word], gold: Sequence[Word]) -> bool:
    """Whether one is the initials of the other, of three words at least."""
    first, last = item[0].start, item[-1].end
    whole = [word.key for word in gold if first <= word.start < last]
    forms = {"".join(key[0] for key in keys) for keys in ([word.key for word in item], whole) if len(keys) >= 3}
    if forms & {word.key for word in words}:
        return True
    if len(item) > 1:
        return False
    return any(_expansion(item[0].key, run) for run in ([word for word in words if word.content], words))


def _expansion(acronym: str, words: Sequence[Word]) -> Sequence[Word]:
    """The words in a row of which these are the initials, three at least; none when there are none."""
    length = len(acronym)
    runs = (words[index : index + length] for index in range(len(words) - length + 1) if 3 <= length <= 6)
    return next((run for run in runs if "".join(word.key[0] for word in run) == acronym), ())


def _neighbours(reading: Reading, quantity: Quantity) -> set[str]:
    """The content word that a quantity counts: the next one of its segment, or else the one before."""
    bounds = next((span for span in segments(reading.text) if span[0] <= quantity.start < span[1]), (0, 0))
    others = [item.start for item in reading.quantities if item is not quantity]
    content = [word for word in reading.content if bounds[0] <= word.start < bounds[1]]
    after = [word for word in content if word.start >= quantity.end]
    if after and not any(quantity.end <= start < after[0].start for start in others):
        return {after[0].key}
    before = [word for word in content if word.end <= quantity.start]
    if before and not any(before[-1].end <= start < quantity.start for start in others):
        return {before[-1].key}
    return set()


def _stray(said: Sequence[Quantity], known: Sequence[Quantity], asked: str) -> Quantity | None:
    percent = _PERCENT_ASKED.search(asked) is not None
    return next(
        (item for item in said if not item.soft and not any(agree(one, item, percent_asked=percent) for one in known)),
        None,
    )


def _rival_names(said: Reading, known: set[str]) -> str:
    """A run of two or more capitalised words of which none is known: another name than the answer."""
    run: list[Word] = []
    for word in (*said.words, Word("", len(said.text), len(said.text), capital=False)):
        adjacent = run and said.text[run[-1].end : word.start].strip() == ""
        if word.capital and word.content and word.key not in known and (adjacent or not run):
            run.append(word)
            continue
        if len(run) >= 2 and not re.search(r"\b(?:in|of|from|at|near)\s+$", said.text[: run[0].start].lower()):
            return said.text[run[0].start : run[-1].end]
        run = [word] if word.capital and word.content and word.key not in known else []
    return ""


def _shown(reading: Reading, quantity: Quantity) -> str:
    return reading.text[quantity.start : quantity.end].strip()
