"""What models write, as CRAG reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize, normalize_sample
from services.kit.llm import Sample


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        ("  Paris.\n", "Paris."),
        ("Answer: Paris", "Paris"),
        ("**Final answer:** Paris", "Paris"),
        ("Answer:\nParis", "Paris"),
        ("Paris\n\nExplanation: it is the capital.", "Paris"),
        ("The tower\tis   330 m\x00tall", "The tower is 330 m tall"),
        ("A - B", "A - B"),
        ("20231024, 20231025", "2023-10-24, 2023-10-25"),
        ("20231024 to 20231025.", "2023-10-24 to 2023-10-25."),
        ("There were 20201231 inhabitants", "There were 20201231 inhabitants"),
        ("10. May\n12. June", "10. May, 12. June"),
        ("Not included.", "Not included."),
        ("Invalid: the card has expired", "Invalid: the card has expired"),
        ("$20231024", "$20231024"),
        ("20231345", "20231345"),
        ("20231024.5", "20231024.5"),
        ("The answer to this question is:\nParis", "Paris"),
        ("1. Paris\n2. Rome\n3) Oslo\nThese are capitals.", "Paris, Rome, Oslo"),
        ("Three cities:\n- Paris\n- Rome", "Paris, Rome"),
        ("1. FC Köln", "1. FC Köln"),
        ("**1889**", "1889"),
        ("```\nParis\n```", "Paris"),
        ("```text\nParis\n```", "Paris"),
        ("---\nParis", "Paris"),
        ("<think>\nThe page says so.\n</think>\n\nParis", "Paris"),
        ("The page says so.\n</think>\n\nParis", "Paris"),
        ("I'm Not There", "I'm Not There"),
        ("I'm Not Sure What I Want by the Replicants", "I'm Not Sure What I Want by the Replicants"),
        ("No Information", "No Information"),
        ("Not Available", "Not Available"),
        ("It is not available in Norway", "It is not available in Norway"),
        ("It cannot be determined by sight", "It cannot be determined by sight"),
        ("There is no information desk there", "There is no information desk there"),
    ],
)
def test_one_line_without_labels(text: str, answer: str) -> None:
    assert normalize(text) == Normalized(answer, "answer")


@pytest.mark.parametrize(
    "text",
    [
        "i don't know", "I don’t know.", "I do not know the answer to that.", "Paris, but I don't know for sure",
        "The documents do not mention it.", "The provided context doesn't contain this information.",
        "The date is not mentioned in the documents.", "I cannot determine the answer from the documents.", "",
        "\n \n", "...", "Answer:",
        "There is no information about this in the documents.", "I don't have enough information to answer.",
        "It cannot be determined from the documents.", "Not specified in the documents.", "Not specified.",
        "I'm unable to answer this question.", "I'm not sure.", "I’m not entirely sure, perhaps Paris",
        "The information is not available.", "None of the documents mention it.", "Unable to determine",
        "No information is given about it.", "It is not explicitly stated in the provided context.",
        "<think>Is it Paris?", "<think>Paris</think>", "```\n```",
    ],
)  # fmt: skip
def test_abstentions_are_canonical(text: str) -> None:
    assert (normalize(text).answer, normalize(text).kind) == (UNKNOWN, "unknown")


@pytest.mark.parametrize("text", ["invalid question", "Invalid question.", "This is an invalid question", "*Invalid*"])
def test_false_premises_are_canonical(text: str) -> None:
    assert (normalize(text).answer, normalize(text).kind) == (INVALID, "invalid_question")


@pytest.mark.parametrize(
    "text",
    [
        "He never said that votes were invalid", "I know: Paris", "You don't know Jack",
        "No financial information was exposed.", "No additional information is required",
        "There is no mention of God in the Constitution.", "I'm Not Sure",
        "The film grossed $200 million; there is no information about its budget.",
        "That information was not available until 1995, when the archives opened.",
    ],
)  # fmt: skip
def test_near_misses_stay_answers(text: str) -> None:
    assert normalize(text).answer == text


@pytest.mark.parametrize(
    ("text", "answer", "cut"),
    [
        ("It is in Paris. It was built in the ye", "It is in Paris.", False),
        ("It is in Paris.", "It is in Paris.", False),
        ("It was built in the ye", "It was built in the", True),
        ("Oslo, Bergen, Narv", "Oslo, Bergen", True),
        ("The cities are:\n- Oslo\n- Bergen\n- Narv", "Oslo, Bergen", True),
        ("1. 1999\n2. 20", "1999", True),
        ("1. Oslo\n2. Bergen\nBoth are in Nor", "Oslo, Bergen", False),
        ("它由玛尔塔设计。建于一八六", "它由玛尔塔设计。", False),
        ("它由玛尔塔于18", "它由玛尔塔于", True),
        ("1" + "0" * 74, UNKNOWN, False),
    ],
)
def test_a_reply_cut_at_the_limit_loses_what_is_not_whole(text: str, answer: str, cut: bool) -> None:
    normalized = normalize_sample(Sample(text, "length"))
    assert (normalized.answer, normalized.cut) == (answer, cut)
    assert not normalize_sample(Sample(text, "stop")).cut


@given(st.text())
def test_always_one_printable_line(text: str) -> None:
    result = normalize(text)
    assert result.answer
    assert result.answer.splitlines() == [result.answer]
    assert (result.kind == "unknown") == (result.answer == UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Dre released The Chronic in 1992 and then",
        "The U.S. had 331 million",
        "$1.2 billion in Jan. 2020 and",
        "It was J. R. R. Tolkien who",
    ],
)
def test_an_abbreviation_ends_no_sentence(text: str) -> None:
    normalized = normalize_sample(Sample(f"{text} wor", "length"))
    assert (normalized.answer, normalized.cut) == (text, True)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris.\nThe context does not mention other cities.", "Paris."),
        ("Norah Jones\n\n(I don't know her birth name.)", "Norah Jones"),
        ('The song is "I Don\'t Know What to Do".', 'The song is "I Don\'t Know What to Do".'),
        ("I Don't Know Why is a song by Norah Jones", "I Don't Know Why is a song by Norah Jones"),
        ("Invalid Litter Dept. by At the Drive-In", "Invalid Litter Dept. by At the Drive-In"),
        ("Hm, let me see.\nI don't know.", UNKNOWN),
        ('"I don\'t know"', UNKNOWN),
        ("I Don't Know", UNKNOWN),
    ],
)
def test_the_answers_line_decides_and_titles_are_no_abstentions(text: str, answer: str) -> None:
    assert normalize(text).answer == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The company earned $3.", "The company earned"),
        ("It opened in May. It was directed by J.", "It opened in May."),
        ("It opened in May.", "It opened in May."),
    ],
)
def test_a_reply_that_was_cut_behind_a_full_stop_may_go_on(reply: str, answer: str) -> None:
    assert normalize(reply, finished=False).answer == answer
