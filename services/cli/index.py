"""`cragmesh index` puts files into a collection, `cragmesh collections` lists and deletes them."""

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError
from rich.progress import TaskProgressColumn, TextColumn, TimeRemainingColumn

from proto.collections import MAX_BATCH_CHARS, MAX_BATCH_DOCUMENTS, CreateCollection, IngestResponse
from services.cli.backup import backup, restore
from services.cli.caller import GATEWAY_TIMEOUT, UNPROCESSABLE, Refused, Unreachable
from services.cli.collections import CollectionClient
from services.cli.console import fail, plain, say, show_table, warn, write, write_json
from services.cli.corpus import Entry, Keys, Upload, files_in, read, source_of
from services.cli.ending import PROBLEM, USAGE, ends, settings_of, wrong
from services.cli.options import AsJson, ShardOption, parse_shard
from services.cli.progress import bar_of
from services.cli.questions import BadInput
from services.cli.services import root
from services.cli.settings import CliSettings
from services.cli.sync import Plan, compare, move, stored
from services.kit import extras
from services.kit.errors import MeshError
from services.kit.settings import KitSettings, MeshUrls

# A batch is to take a few seconds: long enough to be worth a request, short enough to show progress and to repeat.
FIRST_CHARS = 128 * 1024
MOST_CHARS = min(4 * 1024 * 1024, MAX_BATCH_CHARS)
TARGET_S = 3.0
TOO_LARGE = 413
# Documents skipped that are named; the rest is counted.
NAMED_SKIPS = 20

Gateway = Annotated[
    str, typer.Option(help="The gateway's address, for who has no way to the retriever; its key is CRAGMESH_API_KEY.")
]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Its name.")]
INDEX_TYPES = ("keyword", "integer", "float", "bool")


@dataclass(slots=True)
class Tally:
    """Documents by outcome; `skips` names the first that were skipped, with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    points: int = 0
    skips: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def count(self, names: list[str], response: IngestResponse) -> None:
        self.documents += len(names)
        self.points += response.points
        self.counts.update(added=response.added, unchanged=response.unchanged, replaced=response.replaced)
        for item in response.skipped:
            name = names[int(item.stage.partition(":")[2])]
            self.skip(name, f"{item.reason}: {item.detail.partition(': ')[2]}")

    def skip(self, name: str, why: str) -> None:
        self.counts["skipped"] += 1
        if len(self.skips) < NAMED_SKIPS:
            self.skips.append(f"  {name}: {why}")

    def report(self) -> None:
        """Print the counts, and name what was skipped."""
        seconds, counts = time.monotonic() - self.began, self.counts
        for line in self.skips:
            warn(line)
        if counts["skipped"] > len(self.skips):
            warn(f"  and {counts['skipped'] - len(self.skips):,} more")
        parts = [f"{counts['added']:,} documents added"]
        parts += [f"{counts[outcome]:,} {outcome}" for outcome in ("replaced", "unchanged")]
        parts += [f"{counts[outcome]:,} {outcome}" for outcome in ("moved", "removed") if counts[outcome]]
        say(
            f"{', '.join(parts)}, {counts['skipped']:,} skipped; {self.points:,} points in {seconds:.1f} s "
            f"({self.documents / max(seconds, 1e-3):,.1f} documents/s)"
        )


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
        cluster = (encoders, gpus, streams)
        _on_ray(gateway, collection, request, place, keys, source, cluster, vectors_to=vectors_to, vectors=vectors)
        return
    path = Path(place)
    with ends(usage=(BadInput,)):
        files = files_in(path)
    with connected(gateway, again="the same command goes on") as client:
        tally = Tally()
        entries = read(files, path, keys, source)
        folder = path if path.is_dir() else path.parent
        plan = compare(entries, stored(client, collection, source or source_of(folder))) if sync else None
        if plan is not None and dry_run:
            _show(plan, _unreadable(client, collection, plan))
            return
        client.create(collection, request)
        try:
            if plan is not None:
                _follow(client, collection, plan, read(files, path, keys, source), tally)
            else:
                nbytes = sum(file.stat().st_size for file in files if file.is_file()) // share.count
                _ingest(client, collection, share.of_items(entries, lambda entry: entry.key), nbytes, tally)
        finally:
            tally.report()


def _on_ray(
    gateway: str,
    name: str,
    request: CreateCollection,
    place: str,
    keys: Keys,
    source: str,
    cluster: tuple[int, float, int],
    *,
    vectors_to: str,
    vectors: bool,
) -> None:
    try:
        from services.cli import ray_index
    except ModuleNotFoundError as error:
        fail(f"--engine ray needs {error.name}: {extras.command('retriever', 'ray')}", USAGE)
    from services.retriever.collections.stages import Target
    from services.retriever.settings import RetrieverSettings

    began = time.monotonic()
    with ends(usage=(BadInput, ValueError), problem=(MeshError, ray_index.RayError), again="the same command goes on"):
        target = Target(name, settings_of(RetrieverSettings))
        # Refuses the embedded store before a collection is made in it.
        target.store()
        with connected(gateway) as client:
            client.create(name, request)
        corpus = ray_index.Corpus(place if "://" in place else str(Path(place).resolve()), keys, source)
        layout = ray_index.Cluster(*cluster)
        outcome = ray_index.index(corpus, target, layout, vectors_to=vectors_to, vectors=vectors)
    if vectors_to:
        write(vectors_to)
        return
    for line in outcome.problems:
        warn(f"  {line}")
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
    as_json: AsJson = False,
) -> None:
    """List the collections, or delete one."""
    if ctx.invoked_subcommand:
        for option, given in (("--delete", delete), ("--json", as_json)):
            if given:
                fail(f"{option} goes without {ctx.invoked_subcommand}", USAGE)
        return
    with connected() as client:
        if delete:
            client.delete(delete)
            say(f"{delete} is deleted.")
            return
        infos = client.all()
    if as_json:
        write_json(infos)
        return
    rows = (
        (
            *(item.name, f"{item.documents:,}", f"{item.points:,}", plain(", ".join(item.encoders))),
            f"{'chunks' if item.chunked else 'whole documents'}, {item.backend}",
        )
        for item in infos
    )
    show_table(("collection", "documents", "points", "encoders", ""), rows, box=None)


@contextmanager
def connected(gateway: str = "", *, again: str = "") -> Iterator[CollectionClient]:
    """The retriever, whose failure ends the program; `again` says how work goes on that was cut off."""
    hint = f"; what was written stays: {again}" if again else ""
    ending = ends(usage=(BadInput,), problem=(Refused,), unreachable=(Unreachable,), hint=hint, again=again)
    with ending, connect(gateway) as client:
        yield client


def connect(gateway: str = "") -> CollectionClient:
    """The retriever of the settings, or a gateway's collections; wrong settings end the program."""
    if gateway:
        return CollectionClient(gateway.rstrip("/"), key=settings_of(CliSettings).api_key)
    return CollectionClient(root("retriever", settings_of(MeshUrls)), token=settings_of(KitSettings).mesh_token)


def _request(encoders: list[str], whole: bool, indexed: list[str]) -> CreateCollection:
    fields = dict(item.rpartition(":")[::2] for item in indexed)
    for name, kind in fields.items():
        if kind not in INDEX_TYPES or not name:
            fail(f"--index-field {name}:{kind} is not like year:integer; types are {', '.join(INDEX_TYPES)}", USAGE)
    try:
        return CreateCollection.model_validate({"encoders": encoders, "chunked": not whole, "indexed_fields": fields})
    except ValidationError as error:
        fail(wrong(error), USAGE)


def _ingest(client: CollectionClient, name: str, entries: Iterable[Entry], nbytes: int, tally: Tally) -> None:
    limit = FIRST_CHARS
    entries = iter(entries)
    with bar_of(TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()) as bar:
        task = bar.add_task("indexing", total=nbytes, rate="")
        while batch := _batch(entries, limit):
            for entry in batch:
                if entry.problem:
                    tally.skip(entry.name, entry.problem)
                elif entry.upload:
                    _put(client, name, entry.upload, entry.name, tally)
            documents = [(entry.name, entry.document) for entry in batch if entry.document is not None]
            if documents:
                began = time.monotonic()
                response = client.ingest(name, [document for _, document in documents])
                seconds = max(1e-3, time.monotonic() - began)
                tally.count([entry_name for entry_name, _ in documents], response)
                chars = sum(entry.chars for entry in batch)
                # Half of the way at most, since one batch of unchanged documents says nothing of the next.
                limit = int(min(MOST_CHARS, max(16 * 1024, 2 * limit), max(16 * 1024, chars * TARGET_S / seconds)))
                elapsed = max(1e-3, bar.tasks[task].elapsed or 0.0)
                bar.update(task, rate=f"{tally.documents:,} documents, {tally.documents / elapsed:,.1f}/s")
            bar.update(task, advance=sum(entry.nbytes for entry in batch))


def _put(client: CollectionClient, collection: str, upload: Upload, name: str, tally: Tally) -> None:
    """Send a file as it is where the collection lacks it; one that cannot be read is skipped by its name."""
    try:
        before = client.find(collection, upload.id)
        complete = before if before and before.state == "complete" else None
        if complete and (complete.url, complete.digest) == (upload.url, upload.digest):
            tally.documents += 1
            tally.counts["unchanged"] += 1
            return
        info = client.put(collection, upload)
    except Refused as error:
        if error.problem.status not in (GATEWAY_TIMEOUT, UNPROCESSABLE, TOO_LARGE):
            raise
        tally.skip(name, str(error))
        return
    except OSError as error:
        tally.skip(name, error.strerror or type(error).__name__)
        return
    if info.state == "complete":
        tally.documents += 1
        tally.counts["replaced" if complete else "added"] += 1
        tally.points += info.passages
    else:
        tally.skip(name, info.problem or info.state)


def _unreadable(client: CollectionClient, name: str, plan: Plan) -> dict[str, str]:
    """Why the retriever could not read files of a plan when they were sent last, by name, of those unchanged since."""
    problems = {}
    for entry in (*plan.added, *plan.replaced):
        info = client.find(name, entry.id) if entry.upload else None
        if info and info.state == "failed" and info.digest == entry.digest:
            problems[entry.name] = info.problem
    return problems


def _show(plan: Plan, unreadable: Mapping[str, str]) -> None:
    skipped = [*((entry.name, entry.problem) for entry in plan.problems), *unreadable.items()]
    for action, names in (
        ("add", [entry.name for entry in plan.added if entry.name not in unreadable]),
        ("replace", [entry.name for entry in plan.replaced if entry.name not in unreadable]),
        ("move", [f"{old.url.removeprefix('file:')} -> {entry.name}" for old, entry in plan.moved]),
        ("remove", [old.url.removeprefix("file:") or old.id for old in plan.removed]),
        ("skip", [f"{name}: {problem}" for name, problem in skipped]),
    ):
        for name in names:
            write(f"{action} {name}")
    say(f"{plan.unchanged:,} unchanged; nothing was done")


def _follow(client: CollectionClient, name: str, plan: Plan, entries: Iterable[Entry], tally: Tally) -> None:
    """Carry out a plan; files are read again for it, since a corpus may be larger than the memory."""
    for entry in plan.problems:
        tally.skip(entry.name, entry.problem)
    lost = move(client, name, plan.moved)
    tally.counts.update(moved=len(plan.moved) - len(lost), unchanged=plan.unchanged)
    sizes = {entry.id: entry.nbytes for entry in (*plan.added, *plan.replaced, *lost)}
    changed = (entry for entry in entries if entry.id in sizes and not entry.problem)
    _ingest(client, name, changed, sum(sizes.values()), tally)
    for old in plan.removed:
        client.delete_document(name, old.id)
        tally.counts["removed"] += 1


def _batch(entries: Iterator[Entry], limit: int) -> list[Entry]:
    batch: list[Entry] = []
    chars = 0
    for entry in itertools.islice(entries, MAX_BATCH_DOCUMENTS):
        batch.append(entry)
        chars += entry.chars
        # One more of the largest size must still fit into a request.
        if chars >= limit:
            break
    return batch
