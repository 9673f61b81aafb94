"""Programs about films, their people and the Academy Awards."""

from lab.trainer.synthesise import movies
from lab.trainer.synthesise.programs.drawn import Drawn, Gold, made, quoted
from lab.trainer.synthesise.world import World

_FILM_KEY = {
    "budget": "budget",
    "revenue": "revenue",
    "release date": "release_date",
    "original title": "original_title",
    "original language": "original_language",
    "length": "length",
    "rating": "rating",
    "director name": "director",
    "producer name": "producer",
    "genres": "genres",
}


def film_fact(w: World) -> Drawn | None:
    v = w.voice
    film = v.pick(w.films)
    what = v.weighted(
        {
            "budget": 1.2,
            "revenue": 2.0,
            "release date": 2.0,
            "original title": 2.0,
            "original language": 1.5,
            "length": 0.8,
            "rating": 0.5,
            "director name": 1.6,
            "producer name": 0.6,
            "genres": 0.5,
        }
    )
    key = _FILM_KEY[what]
    query = (
        v.say(v.pick((*movies.SAME, *movies.BEFORE)), x=film.title)
        if what == "original title" and v.chance(0.4)
        else v.ask(*movies.ATTRIBUTES[what], x=film.title)
    )
    if key in ("director", "producer"):
        gold: Gold = tuple(name for name, job in film.crew if job.lower() == key)
        if not gold:
            return None
    else:
        gold = tuple(film.facts["genres"]) if key == "genres" else (film.facts[key],)
    return made(w, query, f'get_movie({quoted(film.title)})["{key}"]', gold)


def born(w: World) -> Drawn | None:
    v = w.voice
    who = v.pick(w.people)
    return made(w, v.ask(*movies.BORN, x=who), f'get_person({quoted(who)})["birthday"]', (w.birthdays[who],))


def compare_films(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(w.films, 2)
    key, words = v.pick(
        (
            ("revenue", "[made|earned|grossed] more [money|at the box office]"),
            ("budget", "had the [bigger|larger|higher|smaller] budget"),
            ("release_date", "[came out|was released] [first|earlier|later]"),
            ("length", "is [longer|shorter]"),
            ("rating", "has the [higher|better] rating"),
        )
    )
    query = v.say(
        "[which [movie|film|one] {w}, {a} or {b}|between {a} and {b}, which {w}|{a} or {b}, which [movie |film |]{w}]",
        w=v.say(words),
        a=one.title,
        b=two.title,
    )
    return made(
        w,
        query,
        "\n".join(f'get_movie({quoted(f.title)})["{key}"]' for f in (one, two)),
        (one.facts[key], two.facts[key]),
        "comparison",
    )


def compare_people(w: World) -> Drawn | None:
    v = w.voice
    a, b = v.some(w.people, 2)
    query = v.say(
        (
            "[who is [older|younger], {a} or {b}|is {a} [older|younger] than {b}|which [actor|one] "
            "is [older|younger], {a} or {b}|who was born first, {a} or {b}]"
        ),
        a=a,
        b=b,
    )
    return made(
        w,
        query,
        "\n".join(f'get_person({quoted(x)})["birthday"]' for x in (a, b)),
        (w.birthdays[a], w.birthdays[b]),
        "comparison",
    )


def age_at_film(w: World) -> Drawn | None:
    v = w.voice
    film = v.pick(w.films)
    who = v.pick(film.cast)[0]
    query = v.say("how old was {a} when {x} [came out|was released]", a=who, x=film.title)
    return made(
        w,
        query,
        f'get_person({quoted(who)})["birthday"]\nget_movie({quoted(film.title)})["release_date"]',
        (w.birthdays[who], film.facts["release_date"]),
        "multi-hop",
    )


def casting(w: World) -> Drawn | None:
    v = w.voice
    film = v.pick(w.films)
    who, role = v.pick(film.cast)
    names = tuple(name for name, _ in film.cast)
    call = "get_movie_person_cast"
    title = quoted(film.title)
    match v.weighted({"actor": 3.0, "role": 1.2, "all": 1.5, "leads": 1.2, "lead": 1.0, "count": 1.0}):
        case "actor":
            query = v.say(
                (
                    "[who [played|plays|portrayed|acted as|voiced] {r} in [the movie |]{x}|which "
                    "[actor|actress] [played|plays] {r} in {x}|what's the name of the "
                    "[actor|actress] who played [the role of |]{r} in {x}|in {x}, who played {r}]"
                ),
                r=role,
                x=film.title,
            )
            return made(
                w, query, f'{call}({title}, None, eq(character, {quoted(role)}))["name"]', (who,), "simple_w_condition"
            )
        case "role":
            query = v.say("[who|which character|what role|whom] did {a} play in {x}", a=who, x=film.title)
            return made(w, query, f'{call}({title}, {quoted(who)}, None)["character"]', (role,), "simple_w_condition")
        case "all":
            query = v.ask(
                ("the cast of {x}", "the [actors|actors and actresses] [in|of] {x}"),
                ("who [acted|starred|played|is] in [the movie |]{x}", "which actors are in {x}"),
                x=film.title,
            )
            return made(w, query, f'ALL {call}({title}, None, None)["name"]', names[:5], "set")
        case "leads":
            k = v.between(2, 3)
            query = v.ask(
                ("the [{k} |{k} main |{k} lead ]actors of {x}",),
                ("who are the {k} [main|lead|top] [actors|characters|stars|roles] [in|of] {x}",),
                x=film.title,
                k=k,
            )
            if str(k) not in query:
                return None
            key = "character" if "character" in query or "roles" in query else "name"
            gold = tuple((name if key == "name" else part) for name, part in film.cast[:k])
            return made(w, query, f'{call}({title}, None, None) sort(None, order)["{key}"][:{k}]', gold, "set")
        case "lead":
            query = v.say(
                "who [is|was|played] the [lead|star|main actor|lead actor|leading role] [of|in] {x}", x=film.title
            )
            return made(w, query, f'{call}({title}, None, None) sort(None, order)["name"][:1]', names[:1])
        case _:
            query = v.say(
                (
                    "how [many actors are in|large is the cast of|many people are in the cast "
                    "of|many actors appear in] {x}"
                ),
                x=film.title,
            )
            return made(w, query, f"LEN {call}({title}, None, None)", (len(names),), "aggregation")


def compare_casts(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(w.films, 2)
    query = v.say(
        "[which [movie|film] has|who had] the [bigger|larger|smaller] cast, {a} or {b}", a=one.title, b=two.title
    )
    return made(
        w,
        query,
        "\n".join(f"LEN get_movie_person_cast({quoted(f.title)}, None, None)" for f in (one, two)),
        (len(one.cast), len(two.cast)),
        "comparison",
    )


def _films_of(w: World, who: str, role: str) -> list[dict[str, object]]:
    found = []
    for film in w.films:
        inside = (
            any(name == who for name, _ in film.cast)
            if role == "acted"
            else any(name == who and job == "Director" for name, job in film.crew)
        )
        if inside:
            found.append({**film.facts, "title": film.title})
    return found


def filmography(w: World) -> Drawn | None:
    v = w.voice
    role = v.pick(("acted", "directed"))
    who = v.pick(w.people if role == "acted" else w.people[:30])
    films = _films_of(w, who, role)
    if not films:
        return None
    acted = role == "acted"
    base = "get_movie_person_cast(None, " if acted else "get_movie_person_crew(None, "
    condition = "None" if acted else 'eq(job, "Director")'
    plain = f"{base}{quoted(who)}, {condition})"
    verb = "[star in|act in|play in|appear in]" if acted else "[direct|make as a director]"
    done = "[been in|acted in|starred in]" if acted else "directed"
    by = "[with|starring]" if acted else "[by director|directed by]"
    years = [int(str(f["release_date"])[:4]) for f in films]
    match v.weighted(
        {
            "all": 1.5,
            "count": 1.2,
            "newest": 1.5,
            "first": 1.5,
            "top": 2.0,
            "rated": 0.7,
            "year": 2.0,
            "range": 1.0,
            "genre": 0.8,
            "average": 0.5,
        }
    ):
        case "all":
            query = v.ask(
                (f"the [films|movies] {by} {{x}}",),
                (f"[what|which] [movies|films] [did {{x}} {verb}|has {{x}} {done}]",),
                x=who,
            )
            return made(w, query, f'ALL {plain}["title"]', tuple(f["title"] for f in films), "set")
        case "count":
            query = v.ask(
                (f"the number of [films|movies] {by} {{x}}",),
                (f"how many [movies|films] [did {{x}} {verb}|has {{x}} {done}]",),
                x=who,
            )
            return made(w, query, f"LEN {plain}", (len(films),), "aggregation")
        case "newest":
            newest = max(films, key=lambda f: str(f["release_date"]))
            query = v.ask(
                (
                    f"the [latest|newest|most recent|last] [film|movie] {by} {{x}}",
                    *(("{x}'s [latest|newest|most recent] [movie|film]",) if acted else ()),
                ),
                x=who,
            )
            return made(
                w, query, f'{plain} sort(None, -release_date)["title"][:1]', (newest["title"],), "simple_w_condition"
            )
        case "first":
            oldest = min(films, key=lambda f: str(f["release_date"]))
            query = v.ask(
                (
                    f"the [first|earliest|debut] [film|movie] {by} {{x}}",
                    *(
                        ("{x}'s [first|very first] [movie|film]",)
                        if acted
                        else ("{x}'s [directorial debut|debut as a director]",)
                    ),
                ),
                x=who,
            )
            return made(
                w, query, f'{plain} sort(None, release_date)["title"][:1]', (oldest["title"],), "simple_w_condition"
            )
        case "top":
            k = v.pick((1, 1, 2, 3, 5))
            if k > len(films):
                return None
            best = sorted(films, key=lambda f: -int(str(f["revenue"])))[:k]
            words = "[highest[-| ]grossing|most successful|highest[-| ]earning|top grossing]"
            query = (
                v.ask(
                    (f"the {words} [film|movie] {by} {{x}}", *((f"{{x}}'s {words} [film|movie]",) if acted else ())),
                    x=who,
                )
                if k == 1
                else v.ask((f"the [top |]{k} {words} [films|movies] {by} {{x}}",), x=who)
            )
            return made(
                w,
                query,
                f'{plain} sort(None, -revenue)["title"][:{k}]',
                tuple(f["title"] for f in best),
                "post-processing",
            )
        case "rated":
            best_one = max(films, key=lambda f: float(str(f["rating"])))
            query = v.ask((f"the [best|highest] rated [film|movie] {by} {{x}}",), x=who)
            return made(w, query, f'{plain} sort(None, -rating)["title"][:1]', (best_one["title"],), "post-processing")
        case "year":
            year = v.pick(years)
            gold = tuple(f["title"] for f, y in zip(films, years, strict=True) if y == year)
            query = v.ask(
                (f"the {year} [movie|film] {by} {{x}}",),
                (
                    f"[what|which] [movie|movies|film|films] did {{x}} {verb} in {year}",
                    f"[what|which] {year} [movie|film] [did {{x}} {verb}|was {by} {{x}}]",
                    f"in {year}, [what|which] [movie|film] did {{x}} {verb}",
                ),
                x=who,
            )
            condition = f"eq(year, {year})" if acted else f'[eq(job, "Director"), eq(year, {year})]'
            return made(w, query, f'{base}{quoted(who)}, {condition})["title"]', gold, "simple_w_condition")
        case "range":
            low = v.between(1960, 2010)
            high = low + v.between(3, 20)
            number = sum(low <= y <= high for y in years)
            if not number:
                return None
            query = v.ask(
                (),
                (f"how many [movies|films] did {{x}} {verb} [from {low} to {high}|between {low} and {high}]",),
                x=who,
            )
            conditions = (
                f"[ge(year, {low}), le(year, {high})]"
                if acted
                else f'[eq(job, "Director"), ge(year, {low}), le(year, {high})]'
            )
            return made(w, query, f"LEN {base}{quoted(who)}, {conditions})", (number,), "aggregation")
        case "genre":
            genre = str(v.pick(v.pick([f["genres"] for f in films])))  # type: ignore[arg-type]
            gold = tuple(f["title"] for f in films if genre in f["genres"])  # type: ignore[operator]
            query = v.ask(
                (),
                (
                    f"in which {{g}} [movies|films] did {{x}} {'act' if acted else 'direct'}"
                    if acted
                    else "which {g} [movies|films] did {x} direct",
                ),
                x=who,
                g=genre.lower(),
            )
            condition = (
                f"eq(genres, {quoted(genre)})" if acted else f'[eq(job, "Director"), eq(genres, {quoted(genre)})]'
            )
            return made(w, query, f'{base}{quoted(who)}, {condition})["title"]', gold, "simple_w_condition")
        case _:
            query = v.ask((f"the average [box office|revenue] of the [films|movies] {by} {{x}}",), x=who)
            total = sum(int(str(f["revenue"])) for f in films) / len(films)
            return made(w, query, f'AVG {plain}["revenue"]', (total,), "aggregation")


def together(w: World) -> Drawn | None:
    v = w.voice
    film = v.pick(w.films)
    a, b = v.some([name for name, _ in film.cast], 2)
    both = tuple(f.title for f in w.films if {a, b} <= {name for name, _ in f.cast})
    call = f"get_movie_person_cast(None, [{quoted(a)}, {quoted(b)}], None)"
    if v.chance(0.3):
        query = v.say(
            "[in how many|how many] [movies|films] [are|did] {a} and {b} [together|act together|star together]",
            a=a,
            b=b,
        )
        return made(w, query, f"LEN {call}", (len(both),), "aggregation")
    query = v.say(
        (
            "[[what|which] [movie|film|movies] [did {a} and {b} make together|has both {a} and "
            "{b}|were {a} and {b} both in|star both {a} and {b}]|films with both {a} and {b}]"
        ),
        a=a,
        b=b,
    )
    return made(w, query, f'{call}["title"]', both, "set")


def oscar_of_year(w: World) -> Drawn | None:
    v = w.voice
    award = v.pick(w.oscars)
    if award.year < 1960 and v.chance(0.6):
        return None
    _, _, short, personal = next(c for c in movies.CATEGORIES if c[1] == award.category)
    said = v.say(award.words)
    ask_film = not personal or v.chance(0.15)
    when = v.say(
        v.pick(
            (
                "in {y}",
                "in {y}",
                "in {y}",
                "in the year {y}",
                "during {y}",
                "of {y}",
                "at the {y} ceremony",
                "at the {y} academy awards",
            )
        ),
        y=award.year,
    )
    query = v.ask(
        *((movies.FILM_NOUNS, movies.FILM_WON) if ask_film else (movies.WHO_NOUNS, movies.WHO_WON)), c=said, when=when
    )
    key, gold = ("film", award.work) if ask_film else ("name", award.person)
    category = _category(short)
    return made(
        w,
        query,
        (
            f'get_movie_person_oscar(None, None, [eq(year, {award.year}), eq(category, "{category}"), '
            f'eq(winner, true)])["{key}"]'
        ),
        (gold,),
        "simple_w_condition",
    )


def _category(short: str) -> str:
    """A category as the worked examples write it."""
    return {
        "best animated feature film": "animated feature",
        "best documentary feature": "documentary feature",
        "best visual effects": "visual effects",
        "best international feature film": "international feature",
    }.get(short, short)


def oscars_of_one(w: World) -> Drawn | None:
    v = w.voice
    award = v.pick(w.oscars)
    person = v.chance(0.6) or all(film.title != award.work for film in w.films)
    who = award.person if person else award.work
    mine = [a for a in w.oscars if (a.person if person else a.work) == who]
    slot = f"None, {quoted(who)}" if person else f"{quoted(who)}, None"
    call = f"get_movie_person_oscar({slot}, eq(winner, true))"
    match v.weighted({"count": 3.0, "nominated": 1.0, "categories": 1.0, "first": 1.0, "films": 1.0, "two": 1.0}):
        case "count":
            query = v.ask(
                ("the number of [oscars|academy awards] [won by {x}|{x} [won|has won|has]]",),
                (
                    "how many [oscars|academy awards] [has|did] {x} [won|win|get]",
                    "how many [oscars|academy awards] does {x} have",
                    "how many times has {x} won an [oscar|academy award]",
                ),
                x=who,
            )
            return made(w, query, f"LEN {call}", (len(mine),), "aggregation")
        case "nominated":
            query = v.ask(
                (),
                (
                    "how many times [was|has] {x} [been |]nominated for an [oscar|academy award]",
                    "how many oscar nominations [has|did] {x} [have|get]",
                ),
                x=who,
            )
            return made(w, query, f"LEN get_movie_person_oscar({slot}, None)", (len(mine),), "aggregation")
        case "first" if person:
            first = min(mine, key=lambda a: a.year)
            query = v.say(
                (
                    "[for which|which|what] [movie|film] [did {x} win [his|her|their] first "
                    "oscar|earned {x} [his|her|the] first [oscar|academy award]]"
                ),
                x=who,
            )
            return made(w, query, f'{call} sort(None, year)["film", "year"][:1]', (first.year,), "post-processing")
        case "films" if person:
            query = v.say(
                "[for which|which] [movies|films] did {x} win [an oscar|oscars|academy awards][| for]".replace(
                    "[| for]", ""
                ),
                x=who,
            )
            return made(w, query, f'ALL {call}["film"]', tuple(a.work for a in mine), "set")
        case "two":
            titles = {film.title for film in w.films}
            other = v.pick(
                [a for a in w.oscars if (a.person if person else a.work) != who and (person or a.work in titles)]
            )
            name = other.person if person else other.work
            theirs = [a for a in w.oscars if (a.person if person else a.work) == name]
            query = v.say(
                "[who|which]"
                + (" " if person else " [movie|film] ")
                + "[has|won] more [oscars|academy awards], {a} or {b}",
                a=who,
                b=name,
            )
            second = f"None, {quoted(name)}" if person else f"{quoted(name)}, None"
            return made(
                w,
                query,
                f"LEN {call}\nLEN get_movie_person_oscar({second}, eq(winner, true))",
                (len(mine), len(theirs)),
                "comparison",
            )
        case _:
            query = v.say("[what|which] [oscars|academy awards] did {x} [win|get|receive]", x=who)
            return made(w, query, f'ALL {call}["category"]', tuple(a.category for a in mine), "set")


def oscar_hop(w: World) -> Drawn | None:
    v = w.voice
    award = v.pick(w.oscars)
    _, _, short, personal = next(c for c in movies.CATEGORIES if c[1] == award.category)
    base = (
        f"get_movie_person_oscar(None, None, [eq(year, {award.year}), eq(category, "
        f'"{_category(short)}"), eq(winner, true)])'
    )
    said = v.say(award.words)
    if personal:
        query = v.say(
            (
                "[when was the winner of the {c} oscar in {y} born|the [birthday|birth date] of the "
                "{c} winner of {y}|how old is the person who won the {c} oscar in {y}]"
            ),
            c=said,
            y=award.year,
        )
        return made(
            w,
            query,
            f'{base}["name"]\nget_person(*["name"])["birthday"]',
            (award.person, w.birthdays[award.person]),
            "multi-hop",
        )
    film = next((f for f in w.films if f.title == award.work), None)
    if film is None:
        return None
    key, words, gold = v.pick(
        (
            (
                "director",
                "who directed the [movie|film] that won {c} in {y}",
                tuple(name for name, job in film.crew if job == "Director"),
            ),
            ("revenue", "how much did the [film|movie] that won the {c} oscar in {y} make", (film.facts["revenue"],)),
            ("length", "how long is the [film|movie] that won {c} at the {y} oscars", (film.facts["length"],)),
        )
    )
    return made(
        w, v.say(words, c=said, y=award.year), f'{base}["film"]\nget_movie(*["film"])["{key}"]', gold, "multi-hop"
    )


def films_of_year(w: World) -> Drawn | None:
    v = w.voice
    year = int(v.pick(w.films).facts["release_date"][:4])
    films = [f for f in w.films if f.facts["release_date"].startswith(str(year))]
    call = f'get_year_movies("{year}")'
    match v.pick(("top", "count", "long", "genre")):
        case "top":
            best = max(films, key=lambda f: f.facts["revenue"])
            query = v.say(
                (
                    "[[what|which] was the highest[-| ]grossing [movie|film] of {y}|which {y} "
                    "[movie|film] [made|earned] the most [money|at the box office]|top grossing "
                    "[movie|film] of {y}]"
                ),
                y=year,
            )
            return made(w, query, f'{call} sort(None, -revenue)["title"][:1]', (best.title,), "post-processing")
        case "count":
            query = v.say("how many [movies|films] [came out|were released] in {y}", y=year)
            return made(w, query, f"LEN {call}", (len(films),), "aggregation")
        case "long":
            best = max(films, key=lambda f: f.facts["length"])
            query = v.say("[what|which] was the longest [movie|film] [of|released in] {y}", y=year)
            return made(w, query, f'{call} sort(None, -length)["title"][:1]', (best.title,), "post-processing")
        case _:
            genre = v.pick(v.pick(films).facts["genres"])
            number = sum(genre in f.facts["genres"] for f in films)
            query = v.say("how many {g} [movies|films] [came out|were released] in {y}", g=genre.lower(), y=year)
            return made(w, query, f"LEN {call} where(eq(genres, {quoted(genre)}))", (number,), "aggregation")


def film_money(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(w.films, 2)
    match v.pick(("diff", "ratio", "profit")):
        case "diff":
            query = v.say(
                (
                    "[by how much did {a} out-earn {b}|how much more did {a} [make|earn] than "
                    "{b}|what is the difference in box office between {a} and {b}]"
                ),
                a=one.title,
                b=two.title,
            )
            return made(
                w,
                query,
                f'diff(get_movie({quoted(one.title)})["revenue"], get_movie({quoted(two.title)})["revenue"])',
                (one.facts["revenue"] - two.facts["revenue"],),
                "post-processing",
            )
        case "ratio":
            query = v.say("how many times its budget did {a} [make|earn|bring back]", a=one.title)
            return made(
                w,
                query,
                f'ratio(get_movie({quoted(one.title)})["revenue"], get_movie({quoted(one.title)})["budget"])',
                (one.facts["revenue"] / one.facts["budget"],),
                "post-processing",
            )
        case _:
            query = v.say(
                "[did {a} make or lose money|how much profit did {a} make|what was the profit of {a}]", a=one.title
            )
            return made(
                w,
                query,
                f'get_movie({quoted(one.title)})["profit"]',
                (one.facts["revenue"] - one.facts["budget"],),
                "post-processing",
            )


def crew(w: World) -> Drawn | None:
    v = w.voice
    film = v.pick(w.films)
    who, job = v.pick([(name, job) for name, job in film.crew if job not in ("Director", "Producer")] or [("", "")])
    said = {
        "Screenplay": "[who wrote [the screenplay of |]{x}|the screenwriter of {x}]",
        "Editor": "[who edited {x}|the editor of {x}]",
        "Original Music Composer": "[who composed the [score|music] [of|for] {x}|the composer of {x}]",
        "Director of Photography": (
            "[who shot {x}|the director of photography of {x}|who was the cinematographer of {x}]"
        ),
    }.get(job)
    if not who or said is None:
        return None
    gold = tuple(name for name, other in film.crew if other == job)
    return made(
        w,
        v.say(said, x=film.title),
        f'get_movie_person_crew({quoted(film.title)}, None, eq(job, "{job}"))["name"]',
        gold,
    )


PATTERNS = (
    (8.0, film_fact),
    (3.0, born),
    (1.8, compare_films),
    (0.9, compare_people),
    (0.4, age_at_film),
    (3.4, casting),
    (0.4, compare_casts),
    (4.0, filmography),
    (0.8, together),
    (6.0, oscar_of_year),
    (2.0, oscars_of_one),
    (0.8, oscar_hop),
    (0.8, films_of_year),
    (0.5, film_money),
    (0.5, crew),
)
