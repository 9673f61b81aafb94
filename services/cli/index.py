"""`cragmesh index`: files into a collection; `cragmesh collections`: what there is."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from proto.collections import MAX_BATCH_CHARS, MAX_BATCH_DOCUMENTS, CreateCollection, IngestResponse
from services.cli.backup import backup, restore
from services.cli.caller import GATEWAY_TIMEOUT, Refused, Unreachable
from services.cli.collections import (
    CollectionClient,
    ingest_patiently,
    put_patiently,
)
from services.cli.console import err, fail, out, plain, say, write
from services.cli.corpus import Keys, Read, files_in, read, source_of
from services.cli.ending import PROBLEM, UNREACHABLE, USAGE, ends, settings_of
from services.cli.questions import BadInput
from services.cli.services import root
from services.cli.settings import CliSettings
from services.cli.shards import ShardOption, parse_shard
from services.cli.sync import Plan, held, move, plan
from services.kit.errors import MeshError
from services.kit.settings import KitSettings, MeshUrls

# A batch is to take a few seconds: long enough to be worth a request, short enough to show progress and to repeat.
FIRST_CHARS = 128 * 1024
MOST_CHARS = min(4 * 1024 * 1024, MAX_BATCH_CHARS)
TARGET_S = 3.0
NOT_FOUND, TOO_LARGE, UNPROCESSABLE = 404, 413, 422
# Of what is skipped, lines that are shown; the rest is counted.
SHOWN = 20

Gateway = Annotated[
    str, typer.Option(help="The gateway's address, for who has no way to the retriever; its key is CRAGMESH_API_KEY.")
]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Its name.")]
INDEX_TYPES = ("keyword", "integer", "float", "bool")


class Tally:
    """What became of the documents."""

    def __init__(self) -> None:
        self.documents = self.added = self.unchanged = self.replaced = self.points = self.skipped = 0
        self.written = self.moved = self.removed = 0
        self.shown: list[str] = []

    def count(self, batch: list[Read], response: IngestResponse) -> None:
        self.documents += len(batch)
        self.added += response.added
        self.unchanged += response.unchanged
        self.replaced += response.replaced
        self.points += response.points
        for item in response.skipped:
            name = batch[int(item.stage.partition(":")[2])].name
            self.skip(name, f"{item.reason}: {item.detail.partition(': ')[2]}")

    def skip(self, name: str, why: str) -> None:
        self.skipped += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"  {name}: {why}")


def index(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A file or folder: HTML, Markdown, text, PDF, Office, EPUB, mail, records (.jsonl, .gz, .parquet).",
        ),
    ],
    collection: Collection,
    encoder: Annotated[
        list[str] | None, typer.Option(help="Encoder to index with; repeat it. The retriever's own when not given.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Keep documents whole: abstracts, questions, products.")
    ] = False,
    indexed: Annotated[
        list[str] | None, typer.Option("--index-field", help="FIELD:keyword|integer|float|bool; repeat it.")
    ] = None,
    text_key: Annotated[str, typer.Option(help="Where a record has its text.")] = "text",
    title_key: Annotated[str, typer.Option(help="Where a record has its title.")] = "title",
    id_key: Annotated[str, typer.Option(help="Where a record has its id.")] = "id",
    url_key: Annotated[str, typer.Option(help="Where a record has its address.")] = "url",
    sync: Annotated[
        bool, typer.Option("--sync", help="Follow the folder: move and remove what was moved and removed there.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --sync: say what would be done.")] = False,
    source: Annotated[str, typer.Option(help="The corpus's own name, for one that lies elsewhere the next time.")] = "",
    gateway: Gateway = "",
    shard: ShardOption = "",
    engine: Annotated[
        Literal["retriever", "ray"], typer.Option(help="Who does it: `ray` for many nodes, to a Qdrant server.")
    ] = "retriever",
    encoders: Annotated[int, typer.Option(min=0, help="With Ray: processes that encode; one a CPU when 0.")] = 0,
    gpus: Annotated[float, typer.Option(min=0, help="With Ray: the share of a GPU that each of them has.")] = 0.0,
    streams: Annotated[int, typer.Option(min=1, max=64, help="With Ray: processes that write.")] = 2,
    vectors_to: Annotated[str, typer.Option(help="With Ray: write vectors as Parquet here, and no points.")] = "",
    vectors: Annotated[
        bool, typer.Option("--vectors", help="With Ray: PATH is such Parquet; write its points.")
    ] = False,
) -> None:
    """Index files into a collection, which is made where it does not exist.

    What the collection holds already is left alone, so that after an interruption the same command goes on.
    """
    if dry_run and not sync:
        fail("--dry-run goes with --sync", USAGE)
    share = parse_shard(shard)
    if sync and share.count > 1:
        fail("--sync looks at the whole folder: it goes without --shard", USAGE)
    request = _request(encoder or [], whole, indexed or [])
    keys = Keys(text_key, title_key, id_key, url_key)
    if engine == "ray":
        if sync or share.count > 1:
            fail("--engine ray goes without --sync and --shard", USAGE)

        def create() -> None:
            with connected(gateway) as client:
                client.create(collection, request)

        uri = place if "://" in place else str(Path(place).resolve())
        _on_ray(create, uri, collection, keys, source, (encoders, gpus, streams), (vectors_to, vectors))
        return
    path = Path(place)
    try:
        files = files_in(path)
    except BadInput as error:
        fail(str(error), USAGE)
    client = connect(gateway)
    tally = Tally()
    began = time.monotonic()
    items = read(files, path, keys, source)
    try:
        what = _plan(client, collection, items, source or source_of(_folder(path))) if sync else None
        if what is not None and dry_run:
            _say(what)
            return
        client.create(collection, request)
        if what is not None:
            _follow(client, collection, what, read(files, path, keys, source), tally)
        else:
            nbytes = sum(file.stat().st_size for file in files) // share.count
            _ingest(client, collection, share.of_items(items, lambda item: item.key), nbytes, tally)
    except Refused as error:
        _report(tally, began)
        fail(str(error), PROBLEM)
    except Unreachable as error:
        _report(tally, began)
        fail(f"{error}; what was written stays: the same command goes on", UNREACHABLE)
    finally:
        client.close()
    _report(tally, began)


def _on_ray(
    create: Callable[[], None],
    uri: str,
    name: str,
    keys: Keys,
    source: str,
    cluster: tuple[int, float, int],
    vectors: tuple[str, bool],
) -> None:
    try:
        from services.cli import ray_index
    except ModuleNotFoundError as error:
        fail(f"--engine ray needs {error.name}: pip install 'cragmesh[retriever,ray]'", USAGE)
    from services.retriever.collections.stages import Target
    from services.retriever.settings import RetrieverSettings

    began = time.monotonic()
    with ends(usage=(BadInput, ValueError), problem=(MeshError, ray_index.RayError), again="the same command goes on"):
        target = Target(name, settings_of(RetrieverSettings))
        # Refuses the embedded store before a collection is made in it.
        target.store()
        create()
        corpus, layout = ray_index.Corpus(uri, keys, source), ray_index.Cluster(*cluster)
        outcome = ray_index.index(corpus, target, layout, vectors_to=vectors[0], vectors=vectors[1])
    if vectors[0]:
        write(vectors[0])
        return
    for line in outcome.problems:
        say(f"  {line}", "yellow")
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(outcome.states.items()))
    say(f"documents: {counts or 'none'}; {outcome.points:,} points in {time.monotonic() - began:.1f} s")
    if outcome.twice:
        fail(f"{outcome.twice:,} documents have another's id: chance says which is kept", PROBLEM)


collections = typer.Typer(name="collections", invoke_without_command=True)
collections.command()(backup)
collections.command()(restore)


@collections.callback()
def list_or_delete(
    ctx: typer.Context,
    delete: Annotated[str, typer.Option(help="Delete this one, with all its documents.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the collections, or delete one."""
    if ctx.invoked_subcommand:
        return
    with connected() as client:
        if delete:
            client.delete(delete)
            say(f"{delete} is deleted.")
            return
        found = client.all()
    if as_json:
        write("[" + ",\n ".join(item.model_dump_json() for item in found) + "]")
        return
    table = Table("collection", "documents", "points", "encoders", "", box=None)
    for item in found:
        kind = "chunks" if item.chunked else "whole documents"
        encoders = ", ".join(item.encoders)
        table.add_row(item.name, f"{item.documents:,}", f"{item.points:,}", plain(encoders), f"{kind}, {item.backend}")
    out.print(table)


@contextmanager
def connected(gateway: str = "") -> Iterator[CollectionClient]:
    """The retriever, whose failure ends the program."""
    client = connect(gateway)
    try:
        yield client
    except Refused as error:
        fail(str(error), PROBLEM)
    except Unreachable as error:
        fail(str(error), UNREACHABLE)
    finally:
        client.close()


def connect(gateway: str = "") -> CollectionClient:
    """The retriever of the settings, or what a gateway shows of it; ends the program where they are wrong."""
    try:
        if gateway:
            return CollectionClient(gateway.rstrip("/"), key=CliSettings().api_key)
        return CollectionClient(root("retriever", MeshUrls()), token=KitSettings().mesh_token)
    except ValidationError as error:
        fail(f"settings: {error.errors()[0]['msg']}", USAGE)


def _request(encoders: list[str], whole: bool, indexed: list[str]) -> CreateCollection:
    fields = dict(item.rpartition(":")[::2] for item in indexed)
    for field, kind in fields.items():
        if kind not in INDEX_TYPES or not field:
            fail(f"--index-field {field}:{kind} is not like year:integer; types are {', '.join(INDEX_TYPES)}", USAGE)
    try:
        body = {"encoders": encoders, "chunked": not whole, "indexed_fields": fields}
        return CreateCollection.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        fail(f"{first['loc'][0]}: {first['msg']}", USAGE)


def _ingest(client: CollectionClient, name: str, documents: Iterable[Read], nbytes: int, tally: Tally) -> None:
    limit = FIRST_CHARS
    documents = iter(documents)
    with _bar() as bar:
        task = bar.add_task("indexing", total=nbytes, rate="")
        while batch := _batch(documents, limit):
            good = [item for item in batch if item.document is not None]
            for item in batch:
                if item.problem:
                    tally.skip(item.name, item.problem)
                elif item.upload:
                    _put(client, name, item, tally)
            if good:
                began = time.monotonic()
                response = ingest_patiently(client, name, [item.document for item in good if item.document is not None])
                seconds = max(1e-3, time.monotonic() - began)
                tally.count(good, response)
                chars = sum(len(item.document.text) for item in good if item.document is not None)
                # Half of the way at most, since one batch of unchanged documents says nothing of the next.
                limit = int(min(MOST_CHARS, max(16 * 1024, 2 * limit), max(16 * 1024, chars * TARGET_S / seconds)))
                elapsed = max(1e-3, bar.tasks[task].elapsed or 0.0)
                bar.update(task, rate=f"{tally.documents:,} documents, {tally.documents / elapsed:,.1f}/s")
            bar.update(task, advance=sum(item.nbytes for item in batch))


def _put(client: CollectionClient, name: str, item: Read, tally: Tally) -> None:
    """Send a file as it is; one that cannot be read is named, and the others go on."""
    if item.upload is None:
        return
    try:
        info = put_patiently(client, name, item.upload)
    except Refused as error:
        if error.problem.status in (GATEWAY_TIMEOUT, UNPROCESSABLE, TOO_LARGE):
            tally.skip(item.name, str(error))
            return
        raise
    except OSError as error:
        tally.skip(item.name, error.strerror or type(error).__name__)
        return
    if info.state == "complete":
        tally.documents += 1
        tally.written += 1
        tally.points += info.passages
    else:
        tally.skip(item.name, info.problem or info.state)


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _plan(client: CollectionClient, name: str, items: Iterable[Read], source: str) -> Plan:
    try:
        there = held(client, name, source)
    except Refused as error:
        if error.problem.status != NOT_FOUND:
            raise
        there = {}
    return plan(items, there)


def _say(what: Plan) -> None:
    for word, names in (
        ("add", [item.name for item in what.added]),
        ("replace", [item.name for item in what.replaced]),
        ("move", [f"{old.url.removeprefix('file:')} -> {item.name}" for old, item in what.moved]),
        ("remove", [old.url.removeprefix("file:") or old.id for old in what.removed]),
        ("skip", [f"{item.name}: {item.problem}" for item in what.problems]),
    ):
        for name in names:
            write(f"{word} {name}")
    say(f"{what.unchanged:,} unchanged; nothing was done")


def _follow(client: CollectionClient, name: str, what: Plan, items: Iterable[Read], tally: Tally) -> None:
    """Do what is planned; files are read again for it, since a corpus may be larger than the memory."""
    for item in what.problems:
        tally.skip(item.name, item.problem)
    lost = move(client, name, what.moved)
    tally.moved, tally.unchanged = len(what.moved) - len(lost), what.unchanged
    todo = {item.id: item.nbytes for item in (*what.added, *what.replaced, *lost)}
    _ingest(client, name, (item for item in items if item.id in todo and not item.problem), sum(todo.values()), tally)
    for old in what.removed:
        client.delete_document(name, old.id)
        tally.removed += 1


def _batch(documents: Iterator[Read], limit: int) -> list[Read]:
    batch: list[Read] = []
    chars = 0
    for item in itertools.islice(documents, MAX_BATCH_DOCUMENTS):
        batch.append(item)
        chars += len(item.document.text) if item.document else 0
        # One more of the largest size must still fit into a request.
        if chars >= limit:
            break
    return batch


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )


def _report(tally: Tally, began: float) -> None:
    seconds = time.monotonic() - began
    for line in tally.shown:
        say(line, "yellow")
    if tally.skipped > len(tally.shown):
        say(f"  and {tally.skipped - len(tally.shown):,} more", "yellow")
    parts = [f"{tally.added:,} documents added", f"{tally.replaced:,} replaced", f"{tally.unchanged:,} unchanged"]
    counts = {"files written": tally.written, "moved": tally.moved, "removed": tally.removed}
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    say(
        f"{', '.join(parts)}, {tally.skipped:,} skipped; {tally.points:,} points in {seconds:.1f} s "
        f"({tally.documents / max(seconds, 1e-3):,.1f} documents/s)"
    )
