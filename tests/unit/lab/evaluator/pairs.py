"""Questions of our own with answers that are right in other words, and answers that are wrong in likely ways.

A line is `+` (right) or `-` (wrong), the kind of change, `|`, the prediction; a block begins with `? question` and
`= gold`. Kinds on the right: same, round, format, unit, order, words, alias, more, part. Kinds on the wrong: number,
name, negation, part, further, swap, unit, polarity, hedge, echo.
"""

from collections.abc import Iterator
from dataclasses import dataclass

TEXT = """
? how tall is mount kilimanjaro in metres?
= 5,895 metres
+ format | 5895 m
+ words | Mount Kilimanjaro is 5,895 metres tall.
+ format | It stands 5895 meters high
+ unit | 5.895 km
+ same | 5,895 metres.
- number | 5,985 metres
- number | 5,896 m
- number | about 6,000 metres
- unit | 5,895 feet
- number | 58,950 metres
- hedge | 5,895 or 5,985 metres

? what did the bridge cost?
= $1,234,567,890
+ round | $1.23 billion
+ round | about 1.235 billion dollars
+ format | 1234567890 USD
+ format | $1,234,567,890.00
+ words | The bridge cost roughly $1.23 billion.
- number | $1.32 billion
- number | $1.23 million
- unit | €1.23 billion
- number | $1.2 billion
- number | $1,234,567,809
- negation | It did not cost $1.23 billion.

? what was the closing price of acme corp yesterday?
= $48.37
+ format | 48.37
+ format | 48.37 dollars
+ words | The closing price of Acme Corp yesterday was $48.37.
+ round | $48.4
+ more | Acme closed at $48.37 on February 27, 2024.
- number | $48.73
- number | $4.837
- number | $48.36
- number | $50
- unit | 48.37%
- number | opened at $48.37 and closed at $49.02

? by how much did the index change on the day?
= -2.53%
+ words | It fell 2.53%.
+ format | -2.53 percent
+ round | down 2.5 %
+ words | The index dropped by 2.53 per cent
- number | 2.53%
- number | -3.52%
- number | up 2.53%

? when was the observatory opened?
= 1928-10-24
+ format | October 24, 1928
+ format | 24 October 1928
+ format | 10/24/1928
+ format | 24th of October, 1928
+ words | The observatory was opened on Oct. 24, 1928.
+ format | Wednesday, October 24, 1928
- number | October 25, 1928
- number | 1928-12-24
- number | October 24, 1982
- part | October 1928
- part | 1928
- number | 24 September 1928

? when did the painter first exhibit?
= 7/18/52
+ format | July 18, 1952
+ format | 1952-07-18
+ format | 18 July 1952
+ words | The painter first exhibited on July 18, 1952.
- number | July 18, 1925
- number | July 8, 1952
- number | June 18, 1952
- part | July 1952

? in what year did the ferry service start?
= 2007
+ words | It started in 2007.
+ more | 14 June 2007
+ words | The ferry service started in the year 2007
- number | 2008
- number | 1907
- number | in 2007 or 2008
- negation | not in 2007
- number | 2,070

? when does the festival begin?
= march 9, 2024
+ format | 2024-03-09
+ format | 03/09/2024
+ format | Saturday, 9 March 2024
- number | 2024-09-03
- number | March 19, 2024
- part | in March 2024

? how many films did the studio release?
= 12
+ format | twelve
+ words | The studio released 12 films.
+ format | a dozen
+ words | In all, the studio has released twelve films
- number | 13
- number | twenty
- number | 1.2
- number | 12 million
- number | 10 films and 2 shorts
- hedge | maybe 12
- number | more than 12

? how many people live in the valley?
= 1,867
+ format | 1867
+ words | 1,867 people live in the valley
- number | 1,876
- number | 1,870
- number | 2,000
- number | 18,670
- number | fewer than 1,867

? how many parcels were sorted?
= 7653000
+ format | 7,653,000
+ round | 7.65 million
+ words | 7,653,000 parcels were sorted
+ round | about 7.65 million
- number | 7,563,000
- number | 7.56 million
- number | 7653
- number | 7,653,001
- number | 8 million

? how many awards did the film win?
= the film has won 11 awards out of 14 nominations.
+ part | 11
+ words | The film won eleven awards.
+ more | It won 11 awards from 14 nominations.
- number | 14
- number | 12 awards
- number | 14 awards from 11 nominations

? how long is the opera?
= 2 hours 45 minutes
+ unit | 165 minutes
+ format | 2 h 45 min
+ unit | 2.75 hours
+ words | The opera lasts 2 hours and 45 minutes.
- number | 2 hours 54 minutes
- number | 2 hours
- unit | 165 hours
- number | 245 minutes

? how tall is the point guard?
= 6 feet 3 inches
+ format | 6'3"
+ format | 6 ft 3 in
+ unit | 75 inches
+ unit | 1.91 m
- number | 6 feet 2 inches
- number | 6'5"
- number | 1.80 m
- number | 3 feet 6 inches

? what is the distance between the two towns?
= 42 km
+ format | 42 kilometres
+ unit | 26.1 miles
+ words | The two towns lie 42 kilometers apart.
- unit | 42 miles
- number | 24 km
- number | 4.2 km

? what is the dividend yield?
= 3.18%
+ format | 3.18 percent
+ words | The dividend yield is 3.18 %
+ round | 3.180%
+ format | 3.18
- number | 3.81%
- number | 31.8%
- number | 0.318%

? what was the score of the final?
= 3-1
+ format | 3 to 1
+ words | The final ended 3–1.
- number | 1-3
- number | 3-2
- number | 31
- number | 4-1

? at what time does the train leave?
= 7:30 pm
+ format | 19:30
+ format | 7:30 p.m.
+ words | It leaves at 7:30 PM.
- number | 7:30 am
- number | 7:03 pm
- number | 8:30 pm

? how many moons does the planet have?
= 0
+ format | zero
+ format | none
+ words | It has no moons.
- number | 1
- number | ten

? on which days of the first week did the shop open late?
= 2021-05-03, 2021-05-04, 2021-05-05
+ order | 2021-05-05, 2021-05-03 and 2021-05-04
+ format | May 3, 2021, May 4, 2021 and May 5, 2021
- part | 2021-05-03, 2021-05-04
- number | 2021-05-03, 2021-05-04, 2021-05-06
- further | 2021-05-03, 2021-05-04, 2021-05-05, 2021-05-08

? what are the numbers of gold and silver medals of the team?
= 3 gold and 5 silver medals
+ words | The team has 3 gold and 5 silver medals.
+ order | 5 silver and 3 gold medals
- swap | 5 gold and 3 silver medals
- number | 3 gold and 6 silver medals
- part | 3 gold medals

? what is the turnover of the harbour authority?
= $2,718,281,828.45
+ round | $2.72 billion
+ round | 2,718 million dollars
+ format | 2718281828.45
+ words | Its turnover is $2.718B
- number | $2.27 billion
- number | $272 million
- number | $2.72 trillion

? what does one lot of copper cost?
= $1,648.27
+ format | 1648.27
+ round | $1,648.3
+ words | One lot costs 1,648.27 US dollars
- number | $1,684.27
- number | $1,468.27
- number | $16.48

? what is the age difference between the two sisters?
= the older sister is 7 years older than the younger one.
+ part | 7 years
+ part | seven
+ words | There are seven years between them.
- number | 8 years
- unit | 7 months
- number | 17 years

? who directed the film harbour lights?
= astrid holm
+ words | Harbour Lights was directed by Astrid Holm.
+ same | Astrid Holm
+ order | Holm, Astrid
+ part | Holm
+ words | The director is the Danish filmmaker Astrid Holm.
- name | Ingrid Holm
- name | Astrid Lund
- name | Erik Dahl
- negation | It was not Astrid Holm.
- negation | Astrid Holm did not direct it.
- further | Astrid Holm, Erik Dahl
- hedge | Astrid Holm or Erik Dahl
- swap | Erik Dahl, not Astrid Holm

? who wrote the saga?
= j. r. r. tolkien
+ format | J.R.R. Tolkien
+ words | It was written by J. R. R. Tolkien.
+ part | Tolkien
- name | Christopher Tolkien wrote it
- name | C. S. Lewis
- negation | not Tolkien

? who composed the score?
= josé gonzález
+ format | Jose Gonzalez
+ words | The score was composed by José González
- name | Jose Hernandez
- name | Maria González

? who won the tournament?
= ken griffey jr.
+ format | Ken Griffey Jr
+ format | Ken Griffey Junior
- name | Ken Griffey Sr.
- name | Ken Jennings

? which team won the relay?
= aarhus herons
+ format | the Aarhus Herons
+ part | Herons
+ words | The relay was won by the Aarhus Herons.
- name | Aarhus Otters
- name | Odense Terns
- negation | It was not the Aarhus Herons
- further | Aarhus Herons and Odense Terns

? who are the members of the trio?
= the members of the trio are anna bell, ole carl and mia dunn.
+ part | Anna Bell, Ole Carl, Mia Dunn
+ order | Mia Dunn, Anna Bell and Ole Carl
+ words | The trio consists of Anna Bell, Ole Carl, and Mia Dunn.
- part | Anna Bell and Ole Carl
- part | Mia Dunn
- name | Anna Bell, Ole Carl and Mia Lund
- further | Anna Bell, Ole Carl, Mia Dunn and Ida Falk
- swap | Anna Carl, Ole Dunn and Mia Bell

? which choirs did the tenor sing in?
= the larks and northern quay
+ order | Northern Quay and The Larks
+ format | The Larks, Northern Quay
+ words | He sang in the Larks and in Northern Quay.
- part | The Larks
- name | The Larks and The Rooks
- further | The Larks, Northern Quay and The Rooks

? what are the three largest lakes of the province?
= lake alba; lake borea; lake cinder
+ format | Lake Alba, Lake Borea and Lake Cinder
+ order | Cinder, Alba, Borea
- part | Lake Alba and Lake Borea
- name | Lake Alba, Lake Borea and Lake Dorn

? what is the title of the third volume?
= the long harbour part iii
+ format | The Long Harbour Part 3
+ format | The Long Harbour: Part III
+ words | Its title is "The Long Harbour Part III".
- number | The Long Harbour Part II
- number | The Long Harbour
- name | The Short Harbour Part III

? which film had the larger audience, apollo 12 or apollo 13?
= apollo 13
+ words | Apollo 13 had the larger audience.
+ words | apollo 13 had a larger audience than apollo 12
- number | Apollo 12
- number | Apollo 12 had a larger audience than Apollo 13
- further | both Apollo 12 and Apollo 13
- negation | not Apollo 13

? which of the two funds grew faster, abcd or wxyz?
= abcd
+ words | ABCD grew faster.
+ words | ABCD grew faster than WXYZ.
+ words | Compared to WXYZ, ABCD grew faster.
- name | WXYZ
- name | WXYZ grew faster than ABCD.
- negation | ABCD did not grow faster.
- further | both ABCD and WXYZ

? who is older, marta lind or jonas berg?
= jonas berg is older than marta lind.
+ part | Jonas Berg
+ words | Jonas Berg is the older one
- name | Marta Lind
- name | Marta Lind is older than Jonas Berg.

? which of the two lent more books, red harbour or blue valley?
= the red harbour library lent more books, with 48,200 loans in all, while blue valley had 31,750.
+ part | Red Harbour
+ words | Red Harbour, with 48,200
- name | Blue Valley
- number | Red Harbour, with 84,200 loans

? what colour is the national flower?
= red
+ same | Red.
+ words | The national flower is red.
+ words | It is red
- name | blue
- negation | It is not red.
- further | red and blue
- hedge | red or blue

? in which city is the headquarters?
= paris
+ more | Paris, France
+ words | The headquarters is in Paris.
- name | London
- negation | not in Paris
- hedge | London or Paris
- further | Paris and London

? in which country was the director born?
= united states
+ alias | USA
+ alias | the United States of America
+ alias | the U.S.
- name | United Kingdom
- name | United Arab Emirates
- name | Mexico

? in what language was the play written?
= en
+ alias | English
+ words | The play was written in English.
- name | French
- name | es

? what organisation runs the league?
= national basketball association
+ alias | NBA
+ words | The league is run by the National Basketball Association.
+ alias | The NBA runs it
- name | NFL
- name | National Football League

? who runs the space agency programme?
= nasa
+ alias | National Aeronautics and Space Administration
+ words | NASA runs it.
- name | ESA
- name | European Space Agency

? what is the hero's name?
= spider-man
+ format | Spiderman
+ format | Spider Man
+ words | The hero is Spider-Man
- name | Iron Man
- name | Batman
- negation | He is not Spider-Man

? what was the fashion label called?
= simon & schuster
+ format | Simon and Schuster
+ words | The label was called Simon & Schuster.
- part | Simon
- name | Simon and Garfunkel

? who is the publisher of the game?
= larkspur games inc.
+ format | Larkspur Games
+ words | The game is published by Larkspur Games, Inc.
- name | Foxglove Games
- name | Larkspur Books

? under which title did the novel the ferryman first appear?
= the ferryman
+ same | "The Ferryman"
+ words | It first appeared as The Ferryman.
- echo | The Ferryman first appeared under the title The Oarsman.
- name | The Oarsman

? which western won the prize?
= no country for old men
+ words | The prize was won by No Country for Old Men.
+ format | "No Country for Old Men"
- negation | It was not No Country for Old Men.
- name | A Country for Young Men
- part | Country

? how often has the rower won the regatta?
= the rower has never won the regatta, although he took part nine times.
+ words | The rower has never won it.
+ format | 0
+ words | He has not won the regatta.
- negation | The rower has won the regatta
- number | 3 times
- number | once

? is the tower taller than the dome?
= yes
+ same | Yes.
+ words | Yes, the tower is taller than the dome.
+ words | Yes, by 20 metres
- polarity | No
- polarity | No, the dome is taller.
- polarity | yes and no
- polarity | Yes, it is not.
- name | the dome

? did the band ever tour the islands?
= no
+ same | No.
+ words | No, the band never toured the islands.
+ words | The answer is no.
- polarity | Yes
- polarity | Yes, in 1999.
- polarity | The band toured the islands in 1999.

? is the second bridge longer than the first?
= yes, the second bridge is 300 metres longer.
+ part | yes
+ words | Yes, by 300 m.
- number | Yes, by 400 m.
- polarity | no, it is 300 metres shorter

? what is the address of the second novel?
= the second season of "river"
+ format | season two of River
+ format | River, second season
- number | the third season of "river"
- name | the second season of "lake"

? what is the length of the longest pier?
= the longest pier of the coast reaches 2,914 feet into the sea.
+ part | 2,914 feet
+ format | 2914 ft
+ unit | 888 m
- number | 2,941 feet
- unit | 2,914 metres
- part | the longest pier

? what is the population of the region?
= about 75 million
+ format | 75 million
+ format | 75,000,000
+ round | roughly 75.1 million
- number | 57 million
- number | 78 million
- number | 750 million

? what period do the letters cover?
= 1988 to 1998
+ format | 1988-1998
+ words | from 1988 until 1998
- number | 1988 to 1989
- number | 1998 to 1988
- part | 1988

? when did the movement flourish?
= in the 1990s
+ format | the 1990s
+ format | the '90s
- number | the 1980s
- number | in 1990

? who founded the clinic and in which year?
= elsa brandt in 1921
+ words | Elsa Brandt founded it in 1921.
+ format | Elsa Brandt, 1921
- number | Elsa Brandt in 1912
- name | Otto Brandt in 1921
- part | Elsa Brandt

? what is the name of the mascot?
= it
+ same | It
+ format | "It"
- name | Him
- name | Pennywise

? what is the record of the team this season?
= 41 wins and 12 losses
+ format | 41 wins, 12 losses
+ order | 12 losses and 41 wins
- swap | 12 wins and 41 losses
- number | 41 wins and 13 losses

? how many copies were sold?
= two and a half million copies were not sold; 340,000 were.
- number | 400,000

? what does the ticket cost?
= 5 million dollars
+ format | $5m
+ format | $5,000,000
- number | $5.4 million
- number | $5
- unit | 5 million euros

? how high did the balloon rise?
= 5m
+ format | 5 metres
+ format | 5 meters
- number | 6 metres
- unit | 5 km
"""

# Decimal texts and what their roundings look like; the wrong ones differ in a digit, in place or by a factor of ten.
FIGURES = ("17.284", "305.61", "8421.75", "0.0537", "642.19", "93.482", "12750.4", "2.9183", "481.06", "77.735")


@dataclass(frozen=True, slots=True)
class Pair:
    question: str
    gold: str
    prediction: str
    right: bool
    kind: str


def pairs() -> list[Pair]:
    """All pairs, from the text and from the figures."""
    return [*_written(), *_figures()]


def _written() -> Iterator[Pair]:
    question = gold = ""
    for line in TEXT.strip().splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "?":
            question = rest
        elif mark == "=":
            gold = rest
        elif mark in "+-" and mark:
            kind, _, prediction = rest.partition(" | ")
            yield Pair(question, gold, prediction, mark == "+", kind.strip())


def _figures() -> Iterator[Pair]:
    question = "what was the average price of the metal that year?"
    for figure in FIGURES:
        gold = f"${figure}"
        whole, _, decimals = figure.partition(".")
        rounded = f"{float(figure):.{max(len(decimals) - 1, 0)}f}"
        yield Pair(question, gold, f"${rounded}", right=True, kind="round")
        yield Pair(question, gold, f"The average price was ${figure} that year.", right=True, kind="words")
        yield Pair(question, gold, f"{figure} US dollars", right=True, kind="format")
        first = str(int(figure[-1]) - 1 if figure[-1] != "0" else 1)
        yield Pair(question, gold, f"${figure[:-1]}{first}", right=False, kind="number")
        yield Pair(question, gold, f"${float(figure) * 10:g}", right=False, kind="number")
        yield Pair(question, gold, f"${float(figure) * 1.05:.2f}", right=False, kind="number")
        if len(decimals) > 1 and decimals[0] != decimals[1]:
            swapped = f"{whole}.{decimals[1]}{decimals[0]}{decimals[2:]}"
            yield Pair(question, gold, f"${swapped}", right=False, kind="number")
