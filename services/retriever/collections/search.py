"""Queries over a collection: a list for each encoder and BM25 and each form of the query, fused by reciprocal rank."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from qdrant_client import models

from proto.collections import FieldValue, Filter, RankedList, SearchHit, SearchRequest, SearchResponse
from services.retriever.collections.documents import title_of
from services.retriever.collections.keys import DOCUMENT, END, FIELDS, PAGE, START, TEXT, TITLE, URL

# Reciprocal rank fusion's constant (Cormack et al., 2009); Qdrant's own default of 2 trusts first places far more.
RRF_K = 60

# A shorter text ("See attachment.") is distinct from the same text under another title.
MIN_DISTINCT_CHARS = 100

Vector = list[float] | models.SparseVector


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query of one ranked list.

    Attributes:
        encoder: a name of the collection's encoders, or BM25's.
        query: index of the request's query.
    """

    encoder: str
    query: int
    vector: Vector


def fused_request(request: SearchRequest, queries: Sequence[ListQuery]) -> models.QueryRequest:
    """All lists and their fusion in one request to Qdrant."""
    return models.QueryRequest(
        prefetch=[
            models.Prefetch(
                query=item.vector, using=item.encoder, filter=condition(request.filters), limit=request.candidates
            )
            for item in queries
        ],
        query=models.RrfQuery(rrf=models.Rrf(k=RRF_K)),
        limit=request.top_n,
        with_payload=payload_keys(request),
    )


def list_requests(request: SearchRequest, queries: Sequence[ListQuery]) -> list[models.QueryRequest]:
    """A request for each list."""
    return [
        models.QueryRequest(
            query=item.vector,
            using=item.encoder,
            filter=condition(request.filters),
            limit=request.candidates,
            with_payload=payload_keys(request),
        )
        for item in queries
    ]


def condition(filters: Sequence[Filter], *others: models.Condition) -> models.Filter | None:
    """Filters and further conditions as Qdrant's filter; None where there are none."""
    conditions = [*others, *(one for item in filters for one in _conditions(item))]
    return models.Filter(must=conditions) if conditions else None


def _conditions(item: Filter) -> Iterator[models.Condition]:
    key = f"{FIELDS}.{item.field}"
    if item.equals is not None:
        yield _equals(key, item.equals)
    if item.any_of:
        yield models.Filter(should=[_equals(key, value) for value in item.any_of])
    if item.range is not None:
        numbers = item.range.model_dump(include={"gt", "gte", "lt", "lte"}, exclude_none=True)
        if numbers:
            yield models.FieldCondition(key=key, range=models.Range(**numbers))
        if item.range.since or item.range.until:
            times = models.DatetimeRange(gte=item.range.since, lt=item.range.until)
            yield models.FieldCondition(key=key, range=times)
    if item.exists is not None:
        absent = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
        yield models.Filter(must_not=[absent]) if item.exists else absent


def _equals(key: str, value: FieldValue) -> models.FieldCondition:
    if isinstance(value, float):
        return models.FieldCondition(key=key, range=models.Range(gte=value, lte=value))
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def payload_keys(request: SearchRequest) -> list[str]:
    """The payload's keys that hits and their distinction need."""
    return [DOCUMENT, TITLE, URL, START, END, PAGE, FIELDS, *([TEXT] if request.texts or request.distinct else [])]


def fuse(lists: Sequence[Sequence[models.ScoredPoint]]) -> list[models.ScoredPoint]:
    """Reciprocal rank fusion as Qdrant computes it; equal scores keep the order of the lists."""
    points: dict[str, models.ScoredPoint] = {}
    scores: defaultdict[str, float] = defaultdict(float)
    for ranked in lists:
        for position, point in enumerate(ranked):
            points.setdefault(str(point.id), point)
            scores[str(point.id)] += 1 / (position + RRF_K)
    order = sorted(points, key=lambda point: -scores[point])
    return [points[point].model_copy(update={"score": scores[point]}) for point in order]


def distinct(points: Sequence[models.ScoredPoint]) -> list[models.ScoredPoint]:
    """The first point of each text: mirrored pages and boilerplate would crowd out the others."""
    firsts: dict[Hashable, models.ScoredPoint] = {}
    for point in points:
        firsts.setdefault(_content(point), point)
    return list(firsts.values())


def fused_response(request: SearchRequest, points: Sequence[models.ScoredPoint]) -> SearchResponse:
    """The fused list alone."""
    hits = tuple(_hit(point, request) for point in points)
    return SearchResponse(hits=hits, fused=len(hits))


def lists_response(
    request: SearchRequest, queries: Sequence[ListQuery], lists: Sequence[Sequence[models.ScoredPoint]]
) -> SearchResponse:
    """The lists, and their fusion."""
    fused = fuse(lists)
    identity: Callable[[models.ScoredPoint], Hashable] = _content if request.distinct else lambda point: str(point.id)
    points = distinct(fused) if request.distinct else fused
    place = {identity(point): index for index, point in enumerate(points)}
    return SearchResponse(
        hits=tuple(_hit(point, request) for point in points),
        fused=min(request.top_n, len(points)),
        lists=tuple(
            _ranked(item, [(place[identity(point)], float(point.score)) for point in ranked])
            for item, ranked in zip(queries, lists, strict=True)
        ),
    )


def _ranked(query: ListQuery, ranked: Sequence[tuple[int, float]]) -> RankedList:
    scores: dict[int, float] = {}
    for hit, score in ranked:
        scores.setdefault(hit, score)
    return RankedList(encoder=query.encoder, query=query.query, hits=tuple(scores), scores=tuple(scores.values()))


def _content(point: models.ScoredPoint) -> Hashable:
    text = _text(point)
    return text if len(text) >= MIN_DISTINCT_CHARS else (text, (point.payload or {}).get(TITLE, ""))


def _text(point: models.ScoredPoint) -> str:
    return str((point.payload or {}).get(TEXT, ""))


def _hit(point: models.ScoredPoint, request: SearchRequest) -> SearchHit:
    payload = point.payload or {}
    return SearchHit(
        id=payload.get(DOCUMENT, ""),
        title=title_of(payload),
        url=payload.get(URL, ""),
        text=_text(point) if request.texts else "",
        start=payload.get(START, 0),
        end=payload.get(END, 0),
        page_number=payload.get(PAGE, 0),
        fields=payload.get(FIELDS, {}),
        score=float(point.score),
    )
