"""Programs about artists, songs and the Grammys."""

from lab.trainer.synthesise import music
from lab.trainer.synthesise.programs.drawn import Drawn, made, quoted
from lab.trainer.synthesise.voice import MONTHS
from lab.trainer.synthesise.world import Artist, World


def _artist(w: World, *, band: bool | None = None) -> Artist:
    return w.voice.pick([artist for artist in w.artists if band is None or artist.band == band])


def artist_fact(w: World) -> Drawn | None:
    v = w.voice
    artist = _artist(w)
    name = quoted(artist.name)
    if artist.band:
        match v.pick(("begin", "begin", "end", "country")):
            case "begin":
                return made(w, v.ask(*music.BEGAN, x=artist.name), f'get_person({name})["begin_date"]', (artist.begin,))
            case "end" if artist.end:
                return made(
                    w, v.say(v.pick(music.ENDED), x=artist.name), f'get_person({name})["end_date"]', (artist.end,)
                )
            case _:
                query = v.say(
                    ["[which|what] country [is|are] {x} from", " [do|does] the band {x} come from"][0]
                    if v.chance(0.5)
                    else "where [do|does] the band {x} come from",
                    x=artist.name,
                )
                return made(w, query, f'get_person({name})["birth_place"]', (artist.country,))
    match v.pick(("birth", "birth", "place", "death")):
        case "birth":
            return made(
                w,
                v.ask(*music.ARTIST["birth date"], x=artist.name),
                f'get_person({name})["birth_date"]',
                (artist.begin,),
            )
        case "death" if artist.end:
            return made(
                w,
                v.say("[when did {x} die|on what day did {x} die|in what year did {x} die]", x=artist.name),
                f'get_person({name})["end_date"]',
                (artist.end,),
            )
        case _:
            return made(
                w,
                v.ask(*music.ARTIST["birth place"], x=artist.name),
                f'get_person({name})["birth_place"]',
                (artist.country,),
            )


def members(w: World) -> Drawn | None:
    v = w.voice
    band = _artist(w, band=True)
    name = quoted(band.name)
    match v.weighted({"all": 3.0, "count": 1.5, "who": 1.0, "bands": 1.0, "more": 0.6}):
        case "count":
            return made(
                w,
                v.say("how many [members|people|musicians] [are|were] [in|part of] [the band |]{x}", x=band.name),
                f'LEN get_person({name})["members"]',
                (len(band.members),),
                "aggregation",
            )
        case "who":
            who = v.pick(band.members)
            query = v.say(
                "[was|is] {a} [ever |](in|a member of|part of) [the band |]{x}".replace(
                    "(in|a member of|part of)", v.pick(("in", "a member of", "part of"))
                ),
                a=who,
                x=band.name,
            )
            return made(w, query, f'get_person({name})["members"]', (who,), "simple_w_condition")
        case "bands":
            who = v.pick(band.members)
            return made(
                w,
                v.say("[which|what] [band|bands] [was|is] {x} [in|a member of|part of]", x=who),
                f'get_person({quoted(who)})["bands"]',
                (band.name,),
                "set",
            )
        case "more":
            other = v.pick([a for a in w.artists if a.band and a is not band])
            query = v.say("[who|which band] has more members, {a} or {b}", a=band.name, b=other.name)
            return made(
                w,
                query,
                f'LEN get_person({name})["members"]\nLEN get_person({quoted(other.name)})["members"]',
                (len(band.members), len(other.members)),
                "comparison",
            )
        case _:
            query = v.say(
                v.pick(
                    (
                        "who [are|were] the [members|musicians|people] [of|in] [the band |]{x}",
                        "[name|list|tell me] the members of {x}",
                        "who [is|are|plays] in [the band |]{x}",
                        "which musicians make up {x}",
                    )
                ),
                x=band.name,
            )
            return made(w, query, f'get_person({name})["members"]', tuple(band.members), "set")


def compare_artists(w: World) -> Drawn | None:
    v = w.voice
    band = v.chance(0.5)
    pool = [a for a in w.artists if a.band == band]
    one, two = v.some(pool, 2)
    key = "begin_date" if band else "birth_date"
    query = v.say(
        "[who|which band|which] [formed|started|was founded] [first|earlier], {a} or {b}"
        if band
        else "who is [older|younger], {a} or {b}",
        a=one.name,
        b=two.name,
    )
    return made(
        w,
        query,
        "\n".join(f'get_person({quoted(a.name)})["{key}"]' for a in (one, two)),
        (one.begin, two.begin),
        "comparison",
    )


def song_fact(w: World) -> Drawn | None:
    v = w.voice
    artist = v.pick([a for a in w.artists if a.works])
    title, day, country = v.pick(artist.works)
    what = v.weighted({"author": 3.0, "release date": 2.5, "release country": 0.8})
    key, gold = {
        "author": ("author", artist.name),
        "release date": ("release_date", day),
        "release country": ("release_country", country),
    }[what]
    if what == "release date" and v.chance(0.2):
        query = v.say("was [the song |]{x} released [before|after|prior to] {y}", x=title, y=v.between(1970, 2022))
    else:
        query = v.ask(*music.SONG[what], x=title)
    return made(w, query, f'get_song({quoted(title)})["{key}"]', (gold,))


def works(w: World) -> Drawn | None:
    v = w.voice
    artist = v.pick([a for a in w.artists if a.works])
    name, items = quoted(artist.name), sorted(artist.works, key=lambda item: item[1])
    base = f'get_person({name})["music"]'
    year = v.pick(items)[1][:4]
    of_year = tuple(t for t, d, _ in items if d.startswith(year))
    match v.weighted(
        {
            "newest": 2.0,
            "newest date": 2.0,
            "first": 1.2,
            "first date": 1.0,
            "year": 2.0,
            "year count": 0.8,
            "count": 1.2,
            "all": 0.8,
            "more": 0.6,
        }
    ):
        case "newest":
            query = v.ask(
                (
                    "the [latest|newest|most recent|last] [song|release|work|album] [of|by] {x}",
                    "{x}'s [latest|newest|most recent] [release|song|album]",
                ),
                x=artist.name,
            )
            return made(
                w, query, f'{base} sort(None, -release_date)["title"][:1]', (items[-1][0],), "simple_w_condition"
            )
        case "newest date":
            query = v.ask(
                ("the date of {x}'s [latest|newest|most recent|last] [release|song|work]",),
                (
                    "when did {x} [last release|last put out] [something|a song|music]",
                    "when was the [latest|most recent|last] [release|work] [of|by] {x}",
                    "on what date did {x} release [his|her|their] [latest|newest|last] [song|work|album]",
                ),
                x=artist.name,
            )
            return made(
                w, query, f'{base} sort(None, -release_date)["release_date"][:1]', (items[-1][1],), "post-processing"
            )
        case "first":
            query = v.ask(
                (
                    "the [first|earliest|debut] [song|release|album] [of|by] {x}",
                    "{x}'s [first|debut] [release|song|album]",
                ),
                x=artist.name,
            )
            return made(w, query, f'{base} sort(None, release_date)["title"][:1]', (items[0][0],), "simple_w_condition")
        case "first date":
            query = v.ask(
                ("the date of {x}'s first [release|work]", "the day of the first release by {x}"),
                ("when did {x} release [his|her|their] first [song|work]", "when was {x}'s [debut|first release]"),
                x=artist.name,
            )
            return made(
                w, query, f'{base} sort(None, release_date)["release_date"][:1]', (items[0][1],), "post-processing"
            )
        case "year":
            query = v.ask(
                (),
                (
                    "[what|which] [songs|works|albums and songs] did {x} [release|put out|bring out] in {y}",
                    "[what|which] [songs|works] were released by {x} in {y}",
                    "what did {x} release in {y}",
                ),
                x=artist.name,
                y=year,
            )
            return made(w, query, f'{base} where(eq(release_date, "{year}"))["title"]', of_year, "set")
        case "year count":
            query = v.ask((), ("how many [songs|works] did {x} [release|put out] in {y}",), x=artist.name, y=year)
            return made(w, query, f'LEN {base} where(eq(release_date, "{year}"))', (len(of_year),), "aggregation")
        case "count":
            query = v.ask(
                (),
                (
                    (
                        "how many [songs|works|songs and albums] [has {x} made|does {x} have|has {x} "
                        "released|did {x} release]"
                    ),
                ),
                x=artist.name,
            )
            return made(w, query, f"LEN {base}", (len(items),), "aggregation")
        case "more":
            other = v.pick([a for a in w.artists if a.works and a is not artist])
            query = v.say("[who|which artist] has [more|released more] songs, {a} or {b}", a=artist.name, b=other.name)
            return made(
                w,
                query,
                f'LEN {base}\nLEN get_person({quoted(other.name)})["music"]',
                (len(items), len(other.works)),
                "comparison",
            )
        case _:
            query = v.ask(
                ("the songs [of|by] {x}",),
                ("[what|which] songs [did {x} make|has {x} made|are by {x}]",),
                x=artist.name,
            )
            return made(w, query, f"ALL {base}", tuple(t for t, _, _ in items[:8]), "set")


_BEST = {
    "Best New Artist": "best_new_artist",
    "Album Of The Year": "best_album",
    "Song Of The Year": "best_song",
    "Record Of The Year": "best_record",
}


def grammy_year(w: World) -> Drawn | None:
    v = w.voice
    award = v.pick(w.grammys)
    key = _BEST[award.category]
    edition = music.ordinal(award.year - 1957)
    said = v.pick(
        (
            f"in {award.year}",
            f"at the grammys of {award.year}",
            f"in the {edition} grammy ({award.year})",
            f"at the {edition} grammy ({award.year})",
            f"at the {award.year} grammys",
        )
    )
    words = v.say(award.words)
    artist = award.category == "Best New Artist"
    call = f'get_grammy_year("{award.year}")["{key}"]'
    by = next(a for a in w.artists if a.name == award.person)
    match v.weighted({"one": 4.0, "range": 1.0, "hop": 1.6}):
        case "range" if artist:
            last = min(2019, award.year + v.between(1, 3))
            if last == award.year:
                return None
            names = tuple(a.person for a in w.grammys if award.year <= a.year <= last and a.category == award.category)
            end = f"{music.ordinal(last - 1957)} grammy ({last})"
            query = v.say(
                f"[who [won|were awarded|got] [the |]best new artist from [the |]{edition} grammy "
                f"({award.year}) to [the |]{end}|every best new artist from {award.year} to "
                f"{last}|who were the best new artists between {award.year} and {last}]"
            )
            return made(w, query, f'ALL get_grammy_year("{award.year}", "{last}")["{key}"]', names, "set")
        case "hop" if artist:
            hop, words_of, gold = v.pick(
                (
                    ("birth_place", "[which|what] country does the best new artist {d} come from", by.country),
                    (
                        "begin_date" if by.band else "birth_date",
                        "when was the best new artist {d} [formed|founded]"
                        if by.band
                        else "when was the winner of best new artist {d} born",
                        by.begin,
                    ),
                    ("", "how many songs [has|did] the best new artist {d} [released|release]", len(by.works)),
                )
            )
            second = (
                f'get_person(*["best_new_artist"])["{hop}"]' if hop else 'LEN get_person(*["best_new_artist"])["music"]'
            )
            return made(w, v.say(words_of, d=said), f"{call}\n{second}", (gold,), "multi-hop")
        case _:
            query = v.say(
                f"[who|[which|what] [artist|band]] [won|got|received|was awarded] {words} {said}"
                if artist
                else f"[what|which] [song|work|record|title] [won|got|received|was] [the grammy for |]{words} {said}"
            )
            return made(w, query, call, (award.work,), "simple_w_condition")


def grammys_of_one(w: World) -> Drawn | None:
    v = w.voice
    award = v.pick(w.grammys)
    mine = sorted({(a.year, a.category) for a in w.grammys if a.person == award.person})
    name = quoted(award.person)
    match v.weighted({"count": 3.0, "years": 1.2, "first": 0.8, "categories": 0.8, "more": 1.0, "song": 0.8}):
        case "count":
            query = v.ask(
                ("the number of grammys [won by {x}|of {x}|{x} has]",),
                (
                    "how many [grammys|grammy awards] [has|did|does] {x} [won|win|have]",
                    "how many times has {x} won a grammy[| award]",
                    "how many grammys [did|had] {x} [receive|won] until the 62nd grammy (2019)",
                ),
                x=award.person,
            )
            return made(w, query, f"LEN get_grammy_person({name})", (len(mine),), "aggregation")
        case "years":
            query = v.say("[in [which|what] years|when] did {x} win [grammys|a grammy]", x=award.person)
            return made(w, query, f'get_grammy_person({name})["award_date"]', tuple(y for y, _ in mine), "set")
        case "first":
            query = v.say("[when|in what year] did {x} win [his|her|their] first grammy", x=award.person)
            return made(
                w, query, f'get_grammy_person({name}) sort(None, year)["year"][:1]', (mine[0][0],), "post-processing"
            )
        case "more":
            other = v.pick([a for a in w.grammys if a.person != award.person])
            theirs = {(a.year, a.category) for a in w.grammys if a.person == other.person}
            query = v.say("who [has|won] more grammys, {a} or {b}", a=award.person, b=other.person)
            return made(
                w,
                query,
                f"LEN get_grammy_person({name})\nLEN get_grammy_person({quoted(other.person)})",
                (len(mine), len(theirs)),
                "comparison",
            )
        case "song" if award.work != award.person:
            number = sum(a.work == award.work for a in w.grammys)
            query = v.say("how many [grammys|grammy awards] [did|has] [the song |]{x} [win|won|get]", x=award.work)
            return made(w, query, f"LEN get_grammy_song({quoted(award.work)})", (number,), "aggregation")
        case _:
            query = v.say(
                ["[what|which] grammys did {x} win", " {x} get grammys for"][0]
                if v.chance(0.5)
                else "what did {x} get grammys for",
                x=award.person,
            )
            return made(w, query, f'get_grammy_person({name})["category"]', tuple(c for _, c in mine), "set")


def song_hop(w: World) -> Drawn | None:
    v = w.voice
    artist = v.pick([a for a in w.artists if a.works])
    title = v.pick(artist.works)[0]
    query = v.say(
        "[where does the [singer|artist|writer] of {x} come from|which country is the [singer|artist] of {x} from]",
        x=title,
    )
    return made(
        w,
        query,
        f'get_song({quoted(title)})["author"]\nget_person(*["author"])["birth_place"]',
        (artist.country,),
        "multi-hop",
    )


def chart(w: World) -> Drawn | None:
    v = w.voice
    place = v.pick(w.charts)
    day = place.day.isoformat()
    said = v.pick((day, f"{MONTHS[place.day.month - 1].lower()} {place.day.day}, {place.day.year}"))
    rank = "[number one|number 1]" if place.rank == 1 else f"[number|rank|place] {place.rank}"
    match v.weighted({"rank": 2.0, "artist": 1.0, "weeks": 1.0, "top": 1.0}):
        case "rank":
            query = v.say(f"[which song was|what was] [at |]{rank} [of|on] the [billboard |]hot 100 on {said}")
            return made(w, query, f'get_billboard({place.rank}, "{day}")["song"]', (place.song,), "simple_w_condition")
        case "artist":
            query = v.say(f"[who|which artist] had the {rank} [song|hit] of the hot 100 on {said}")
            program = f'get_billboard({place.rank}, "{day}")["artist"]'
            return made(w, query, program, (place.artist,), "simple_w_condition")
        case "weeks":
            newest = max((p for p in w.charts if p.song == place.song), key=lambda p: p.day)
            query = v.say("for how many weeks has {x} been on the [billboard |]chart", x=place.song)
            return made(w, query, f'get_billboard_song({quoted(place.song)})["weeks_in_chart"]', (newest.weeks,))
        case _:
            newest = max((p for p in w.charts if p.song == place.song), key=lambda p: p.day)
            query = v.say("[what was |]the [peak|top|best] position of {x} on the [billboard|hot 100]", x=place.song)
            return made(w, query, f'get_billboard_song({quoted(place.song)})["top_position"]', (newest.best,))


def works_between(w: World) -> Drawn | None:
    v = w.voice
    artist = v.pick([a for a in w.artists if len(a.works) > 1])
    first, last = sorted(int(d[:4]) for _, d, _ in v.some(artist.works, 2))
    if first == last:
        return None
    found = tuple(t for t, d, _ in artist.works if first <= int(d[:4]) <= last)
    call = f'get_person({quoted(artist.name)})["music"] where(ge(release_date, "{first}"), le(release_date, "{last}"))'
    span = v.pick((f"between {first} and {last}", f"from {first} to {last}"))
    if v.chance(0.6):
        query = v.ask(
            ("the number of [songs|works] {x} released {d}",),
            ("how many [songs|works] did {x} [release|put out] {d}",),
            x=artist.name,
            d=span,
        )
        return made(w, query, f"LEN {call}", (len(found),), "aggregation")
    query = v.ask((), ("[what|which] [songs|works] did {x} [release|put out] {d}",), x=artist.name, d=span)
    return made(w, query, f'{call}["title"]', found, "set")


PATTERNS = (
    (0.5, chart),
    (0.5, works_between),
    (2.6, artist_fact),
    (1.6, members),
    (0.6, compare_artists),
    (3.2, song_fact),
    (3.6, works),
    (1.8, grammy_year),
    (1.5, grammys_of_one),
    (0.4, song_hop),
)
