"""Artists, bands, songs and albums, Grammys and the Billboard Hot 100."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, case, exists, func, select

from services.kg.domains.music import grammys
from services.kg.domains.music.charts import chart_week
from services.kg.domains.music.tables import (
    artist,
    artist_work,
    band_member,
    billboard,
    grammy,
    grammy_artist,
    work,
)
from services.kg.language.catalogue import Domain, Facet, Function, Key, Parameter, Preset
from services.kg.language.tree import Operator
from services.kg.outcome import Outcome


def _honours(c: Any, artists: tuple[Any, ...]) -> ColumnElement[bool]:
    return exists().where(grammy_artist.c.grammy_id == c["_grammy_id"], grammy_artist.c.artist_id.in_(artists))


def _in_category(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
    keys = [grammys.category_key(str(value)) for value in values]
    clause: ColumnElement[bool] = c["_category_key"].in_(keys)
    for value in values:
        clause |= func.lower(c["category"]).contains(str(value).lower(), autoescape=True)
    return ~clause if operator == "neq" else clause


ARTIST = Parameter("name", column="_artist_id", entities=("artist",), required=True)
ARTIST_KEY = Key("artist", aliases=("singer", "band", "performer"), entity="artist", id_column="_artist_id")
MEMBER_OF = artist.alias("band")
FIRST_ARTIST = (
    select(grammy_artist.c.artist_id)
    .where(grammy_artist.c.grammy_id == grammy.c.grammy_id)
    .order_by(grammy_artist.c.artist_id)
    .limit(1)
    .scalar_subquery()
)
GRAMMY_VIEW = select(
    grammy.c.grammy_id.label("_grammy_id"),
    grammy.c.category_key.label("_category_key"),
    grammy.c.work_id.label("_work_id"),
    FIRST_ARTIST.label("_artist_id"),
    grammy.c.year,
    grammy.c.edition,
    grammy.c.category,
    grammy.c.nominee,
    # Of a person's own award the nominee is the person.
    func.coalesce(func.nullif(grammy.c.artist, ""), grammy.c.nominee).label("artist"),
    grammy.c.workers,
    case((grammy.c.winner, 1), else_=0).label("winner"),
)
GRAMMY_KEYS = (
    Key("year", "integer", ("award_date", "date", "award_year", "years")),
    Key("edition", "integer", ("ceremony",)),
    Key("category", aliases=("award",), compare=_in_category),
    Key("nominee", aliases=("song", "album", "title", "work", "name"), entity="song", id_column="_work_id"),
    ARTIST_KEY,
    Key("workers", aliases=("producers", "writers")),
    Key("winner", "flag", ("won",)),
)


def _winner_of(category: str, *aliases: str, artist_only: bool = False) -> Facet:
    shown = ("artist",) if artist_only else ("nominee", "artist")
    return Facet("get_grammy_year", shown, (Preset("category", category), Preset("winner", True)), aliases=aliases)


PEOPLE = Function(
    "get_person",
    "music",
    "a singer's or band's birth place, birth date, lifespan (begin, end), members, music (songs and albums)",
    (ARTIST,),
    select(
        artist.c.artist_id.label("_artist_id"),
        artist.c.name,
        artist.c.birth_place,
        artist.c.begin_date.label("birth_date"),
        artist.c.begin_date,
        artist.c.end_date,
        artist.c.is_band.label("_is_band"),
    ),
    (
        Key("name", entity="artist", id_column="_artist_id"),
        Key("birth_place", aliases=("country", "birthplace", "nationality", "origin"), label="country"),
        Key("birth_date", "date", ("birthday", "born", "dob", "age"), label="date of birth or founding"),
        Key("begin_date", "date", ("begin", "start", "formed", "founded", "debut"), label="begin (birth or founding)"),
        Key("end_date", "date", ("end", "died", "death_date", "disbanded"), label="end (death or disbanding)"),
    ),
    subject=("name",),
    default=("birth_place", "begin_date", "end_date"),
    facets={
        "members": Facet("get_members", ("member",), aliases=("member", "band_members")),
        "bands": Facet("get_bands", ("band",)),
        "lifespan": Facet("get_person", ("begin_date", "end_date"), aliases=("life_span", "active", "career")),
        "music": Facet(
            "get_artist_works", ("title", "release_date"), aliases=("songs", "works", "albums", "discography", "song")
        ),
        "grammys": Facet("get_grammy_person"),
    },
    aliases=("get_artist", "get_band"),
)
MEMBERS = Function(
    "get_members",
    "music",
    "members of a band",
    (Parameter("name", column="_artist_id", entities=("artist",), required=True),),
    select(
        band_member.c.band_id.label("_artist_id"),
        band_member.c.member_id.label("_member_id"),
        artist.c.name.label("band"),
        band_member.c.member_name.label("member"),
        band_member.c.ord.label("order"),
    ).select_from(band_member.join(artist, artist.c.artist_id == band_member.c.band_id)),
    (
        Key("member", aliases=("name", "members", "singer"), entity="artist", id_column="_member_id"),
        Key("band", aliases=("artist", "group"), entity="artist", id_column="_artist_id"),
        Key("order", "integer"),
    ),
    subject=("band", "member"),
    default=("member",),
    order=("order", "member"),
    totals={"name": "music.members"},
    hidden=True,
)
BANDS = Function(
    "get_bands",
    "music",
    "bands that a person is or was a member of",
    (Parameter("name", column="_member_id", entities=("artist",), required=True),),
    MEMBERS.view,
    MEMBERS.keys,
    subject=("band", "member"),
    default=("band",),
    order=("band",),
    hidden=True,
)
WORKS = Function(
    "get_artist_works",
    "music",
    "songs and albums of an artist",
    (ARTIST,),
    select(
        artist.c.artist_id.label("_artist_id"),
        artist.c.name.label("artist"),
        work.c.work_id.label("_work_id"),
        work.c.title,
        work.c.kind,
        work.c.country,
        work.c.release_date,
    ).select_from(
        artist_work.join(work, work.c.work_id == artist_work.c.work_id).join(
            artist, artist.c.artist_id == artist_work.c.artist_id
        )
    ),
    (
        Key("title", aliases=("name", "song", "album", "music"), entity="song", id_column="_work_id"),
        Key("release_date", "date", ("date", "year", "release", "released")),
        Key("country", aliases=("release_country",)),
        Key("kind", aliases=("type",)),
        ARTIST_KEY,
    ),
    subject=("artist", "title"),
    default=("title", "release_date"),
    order=("release_date", "title"),
    totals={"name": "music.works"},
    event="release_date",
    hidden=True,
)
SONGS = Function(
    "get_song",
    "music",
    "a song's or album's author (singer or writer), release date, release country",
    (Parameter("name", column="_work_id", entities=("song",), required=True),),
    select(
        work.c.work_id.label("_work_id"),
        artist.c.artist_id.label("_artist_id"),
        work.c.title,
        artist.c.name.label("author"),
        work.c.country.label("release_country"),
        work.c.release_date,
        work.c.kind,
    ).select_from(
        work.outerjoin(artist_work, artist_work.c.work_id == work.c.work_id).outerjoin(
            artist, artist.c.artist_id == artist_work.c.artist_id
        )
    ),
    (
        Key("title", aliases=("name", "song"), entity="song", id_column="_work_id"),
        Key("author", aliases=("artist", "singer", "writer", "performer"), entity="artist", id_column="_artist_id"),
        Key("release_date", "date", ("date", "year", "release", "released")),
        Key("release_country", aliases=("country",)),
        Key("kind", aliases=("type",)),
    ),
    subject=("title", "author"),
    default=("author", "release_date", "release_country"),
    order=("release_date",),
    facets={"grammys": Facet("get_grammy_song")},
    aliases=("get_album", "get_music"),
)
GRAMMY_PERSON = Function(
    "get_grammy_person",
    "music",
    "Grammys that an artist has won: award_count, award_date (years)",
    (Parameter("name", entities=("artist",), required=True, clause=_honours),),
    GRAMMY_VIEW,
    GRAMMY_KEYS,
    subject=("category", "year", "nominee", "artist"),
    default=("year", "category", "nominee"),
    order=("year", "category"),
    presets=(Preset("winner", True),),
    totals={"name": "music.grammys"},
    facets={
        "award_count": Facet("get_grammy_person", aggregate="len", aliases=("count", "awards", "number", "wins")),
        "award_date": Facet("get_grammy_person", ("year",), aliases=("award_years", "dates")),
    },
)
GRAMMY_SONG = Function(
    "get_grammy_song",
    "music",
    "Grammys that a song or album has won: award_count",
    (Parameter("name", column="_work_id", entities=("song",), required=True),),
    GRAMMY_VIEW,
    GRAMMY_KEYS,
    subject=("category", "year", "nominee", "artist"),
    default=("year", "category"),
    order=("year", "category"),
    presets=(Preset("winner", True),),
    totals={"name": "music.song_grammys"},
    facets={
        "award_count": Facet("get_grammy_song", aggregate="len", aliases=("count", "awards", "number", "wins")),
        "award_date": Facet("get_grammy_song", ("year",), aliases=("award_years", "dates")),
    },
)
GRAMMY_YEAR = Function(
    "get_grammy_year",
    "music",
    "Grammy winners of a year or of a range of years: best_new_artist, best_album, best_song, best_record",
    (Parameter("year", "integer", "year", required=True), Parameter("until", "integer", "year")),
    GRAMMY_VIEW,
    GRAMMY_KEYS,
    subject=("category", "year", "nominee", "artist"),
    default=("category", "nominee", "artist"),
    order=("year", "category"),
    presets=(Preset("winner", True),),
    span=("year", "until"),
    facets={
        "best_new_artist": _winner_of("best new artist", "new_artist", "best_artist", artist_only=True),
        "best_album": _winner_of("album of the year", "album_of_the_year", "album"),
        "best_song": _winner_of("song of the year", "song_of_the_year", "song"),
        "best_record": _winner_of("record of the year", "record_of_the_year", "record"),
    },
)
CHART_KEYS = (
    Key("rank", "integer", ("position", "place"), label="rank on the Billboard Hot 100"),
    Key("song", aliases=("title", "name"), entity="song", id_column="_work_id"),
    Key("artist", aliases=("singer", "performer", "author")),
    Key("date", "date", ("week", "chart_date"), label="chart week"),
    Key("weeks_in_chart", "integer", ("weeks", "weeks_on_chart"), label="weeks on the chart"),
    Key("top_position", "integer", ("peak", "best_position", "highest"), label="best rank"),
    Key("rank_last_week", "integer", ("last_week", "previous_rank"), label="rank the week before"),
)
CHART_VIEW = select(
    billboard.c.work_id.label("_work_id"),
    billboard.c.date,
    billboard.c.rank,
    billboard.c.song,
    billboard.c.artist,
    billboard.c.rank_last_week,
    billboard.c.top_position,
    billboard.c.weeks_in_chart,
)
CHART = Function(
    "get_billboard",
    "music",
    "which song was at a rank of the Billboard Hot 100 in a week",
    (Parameter("rank", "integer", "rank", required=True), Parameter("date", "time", "date")),
    CHART_VIEW,
    CHART_KEYS,
    subject=("song", "artist", "rank", "date"),
    default=("song", "artist"),
    order=("-date",),
    refine=chart_week,
)
CHART_SONG = Function(
    "get_billboard_song",
    "music",
    "a song's rank, weeks_in_chart, top_position, rank_last_week on the Billboard Hot 100",
    (
        Parameter("song", column="_work_id", entities=("song",), required=True),
        Parameter("date", "time", "date"),
    ),
    CHART_VIEW,
    CHART_KEYS,
    subject=("song", "artist", "rank", "date"),
    default=("rank", "weeks_in_chart", "top_position"),
    order=("-date",),
    refine=chart_week,
)


def describe(function: str, row: Mapping[str, Any]) -> str:
    """A row's subject in words."""
    match function:
        case "get_person":
            return str(row["name"])
        case "get_members":
            return f"the band {row['band']}"
        case "get_bands":
            return f"the member {row['member']}"
        case "get_artist_works":
            return f'"{row["title"]}" by {row["artist"]}'
        case "get_song":
            by = f" by {row['author']}" if row.get("author") else ""
            return f'"{row["title"]}"{by}'
        case "get_billboard" | "get_billboard_song":
            return f'"{row["song"]}" by {row["artist"]} in the chart of {row["date"]}'
        case _:
            of = f" by {row['artist']}" if row.get("artist") and row["artist"] != row.get("nominee") else ""
            return f"the {row['category']} Grammy of {row['year']} for {row['nominee']}{of}"


def lead(outcome: Outcome) -> str:
    """What a statement's rows are in words."""
    names = " and ".join(dict.fromkeys(entity.surface for entity in outcome.entities))
    match outcome.function.name if outcome.function else "":
        case "get_members":
            return f"members of {names}, past and present alike"
        case "get_bands":
            return f"bands of {names}"
        case "get_artist_works":
            return f"songs and albums of {names}"
        case "get_grammy_person" | "get_grammy_song":
            return f"Grammys won by {names}"
        case "get_grammy_year":
            return "Grammy winners"
        case "get_billboard" | "get_billboard_song":
            return f"Billboard Hot 100 entries{' of ' + names if names else ''}"
        case "get_song":
            return f'songs named "{names}"'
        case _:
            return names or "artists"


DOMAIN = Domain(
    "music",
    "singers, bands, songs, albums, Grammys, Billboard",
    (
        PEOPLE,
        SONGS,
        GRAMMY_YEAR,
        GRAMMY_PERSON,
        GRAMMY_SONG,
        CHART_SONG,
        CHART,
        MEMBERS,
        BANDS,
        WORKS,
    ),
    describe,
    lead,
)
