"""What a question asks: without the polite phrase in front of it, and whether it wants yes or no."""

import pytest

from services.gateway.question import asks_whether, plain


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("Can you tell me who built the tower?", "who built the tower?"),
        ("Hi, could you please tell us about the tower?", "the tower?"),
        ("Can you name the capital of France?", "the capital of France?"),
        ("could you possibly list all films of 1994", "all films of 1994"),
        ("Are you able to give me the height of the tower?", "the height of the tower?"),
        ("Please tell me, who built it?", "who built it?"),
        ("show me the films of 1994", "the films of 1994"),
        ("I'd like to know who built the tower", "who built the tower"),
        ("I want to know who built the tower", "who built the tower"),
        ("Do you happen to know Ann Lee's age?", "Ann Lee's age?"),
        ("Could you provide the name of the harbour's owner?", "the name of the harbour's owner?"),
        ("please provide the height of the tower", "the height of the tower"),
        ("CAN YOU TELL ME WHO BUILT IT?", "WHO BUILT IT?"),
    ],
)
def test_the_polite_phrase_is_left_out(query: str, question: str) -> None:
    assert plain(query) == question


@pytest.mark.parametrize(
    "query",
    [
        "Can you find diamonds in Arkansas?", "Can you give a cat aspirin?", "Will you list houses in winter?",
        "Can you share a Netflix account with a friend?", "Do you name a boat before launching it?",
        "Can you provide evidence anonymously in court?", "Could you say Pluto is a planet?",
        "Show Boat premiered in which year?", "Tell Tale Heart was written by whom?",
        "Tell Me Why was written by whom?",
        "Show Me the Money is from which movie?", "Give My Regards to Broad Street is by whom?",
        "I Want to Know What Love Is was released when?", "Do You Know Where You're Going To was sung by whom?",
        "Could you tell a wasp from a bee?", "Can you tell", "please",
    ],
)  # fmt: skip
def test_what_asks_something_or_is_a_title_stays(query: str) -> None:
    assert plain(query) == query


@pytest.mark.parametrize(
    "query",
    [
        "Is the bar open on Sundays?",
        "am i allowed to light a candle inside",
        "it's 9 degrees in the hall, do I have to wait?",
        "I only have level A. May I change the tubes?",
        "When the boat is cancelled, do we get our money back?",
        "Don't members pay less?",
        "we come from far away - could we have a later slot?",
        "I only have level A so can I change the tubes",
        "my friend brings her terrier, ok?",
        "Fifty rolls for tomorrow morning. Still possible?",
        "whether the office is open",
        "if dogs are allowed in the hall?",
        "Is it closed when it rains?",
    ],
)
def test_a_question_for_yes_or_no(query: str) -> None:
    assert asks_whether(query)


@pytest.mark.parametrize(
    "query",
    [
        "who is the keeper?",
        "Is it open on Sundays or on Mondays?",
        "What does it cost? Is it more than a ticket",
        "which of them, can you say, is older?",
        "the canteen's hours",
        "Does anyone know who keeps the keys?",
        "May I ask what the deposit is?",
        "Could anyone tell me how much the pass costs?",
        "When in the U.S. does summer time end?",
        "When, if ever, did the plant open?",
        "Can you explain the refund policy?",
        "if it rains what happens to the deposit",
        "whether it rains, who keeps the keys",
    ],
)
def test_a_question_for_something_else(query: str) -> None:
    assert not asks_whether(query)
