"""`cragmesh index --engine ray`: the stages of indexing on Ray Data, from files anywhere to a Qdrant server.

Every stage may be done again, by whichever node: a killed actor costs the block that it was at.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import ray
from pyarrow import compute, fs
from ray.exceptions import RayError

from proto.collections import MEDIA_TYPES
from services.cli.corpus import Entry, Keys, Upload, files_in, read, read_one
from services.cli.questions import BadInput
from services.retriever.collections.documents import File
from services.retriever.collections.schema import Schema
from services.retriever.collections.stages import Encode, Parse, Target, Write, raw

__all__ = ["Cluster", "Corpus", "Outcome", "RayError", "index"]

# Documents that a stage gets at a time: of short ones enough for batches of like length, of books few.
BATCH = 64
# Arrow between two stages: the most work that a killed actor costs.
BLOCK_BYTES = 1024 * 1024
# Problems that are named; counts are of all.
NAMED_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files to index, as every node of the cluster sees them.

    Args:
        uri: a folder or file, absolute, or what pyarrow has a file system for, such as `s3://bucket/folder`.
        source: the corpus's own name; of where it lies when empty.
    """

    uri: str
    keys: Keys
    source: str = ""

    def files(self) -> list[str]:
        """Paths of all files, within the file system.

        Raises:
            BadInput: there is none.
        """
        if "://" not in self.uri:
            return [str(path) for path in files_in(Path(self.uri))]
        system, base = fs.FileSystem.from_uri(self.uri)
        info = system.get_file_info(base)
        if info.type == fs.FileType.File:
            return [base]
        items = system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
        paths = sorted(item.path for item in items if item.type == fs.FileType.File)
        if not paths:
            raise BadInput(f"{self.uri}: holds no file")
        return paths

    def read(self, path: str) -> Iterator[Entry]:
        """The documents of one of the files."""
        if "://" not in self.uri:
            yield from read([Path(path)], Path(self.uri), self.keys, self.source)
            return
        system, base = fs.FileSystem.from_uri(self.uri)
        name = PurePosixPath(path).relative_to(base) if path != base else PurePosixPath(PurePosixPath(path).name)
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder, name.name)
            fs.copy_files(path, str(here), source_filesystem=system, destination_filesystem=fs.LocalFileSystem())
            source = self.source or self.uri
            yield from read_one(here, str(name), Path(source) / name, self.keys, source)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The layout of the work.

    Args:
        encoders: actors that encode at most; as many as the cluster has CPUs when 0.
        gpus: the share of a GPU that each has; it computes on a CPU when 0.
        streams: actors that write.
    """

    encoders: int = 0
    gpus: float = 0.0
    streams: int = 2


@dataclass(slots=True)
class Outcome:
    """Documents by state, points, the first problems, and documents with another's id."""

    states: Counter[str] = field(default_factory=Counter)
    points: int = 0
    problems: list[str] = field(default_factory=list)
    twice: int = 0


def index(corpus: Corpus, target: Target, cluster: Cluster, *, vectors_to: str = "", vectors: bool = False) -> Outcome:
    """Read, parse, encode and write a corpus on the cluster that Ray finds, or starts here.

    Args:
        vectors_to: a folder for Parquet that gets the vectors, in place of the collection.
        vectors: whether the corpus is such a folder, and nothing is parsed and encoded.

    Raises:
        BadInput: there is no file to read.
        MeshError: the server, or its collection, is not as it must be.
        ValueError: the settings name no server.
    """
    schema = asyncio.run(target.schema())
    files = [] if vectors else corpus.files()
    ray.init(ignore_reinit_error=True, logging_level="warning", log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.target_max_block_size = BLOCK_BYTES
    context.enable_progress_bars = False
    table = ray.data.read_parquet(corpus.uri) if vectors else _encoded(corpus, files, target, schema, cluster)
    if vectors_to:
        table.write_parquet(vectors_to)
        return Outcome()
    return asyncio.run(_written(table, target, schema, cluster))


def _encoded(corpus: Corpus, files: list[str], target: Target, schema: Schema, cluster: Cluster) -> Any:
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
    encoding = {"num_gpus": cluster.gpus} if cluster.gpus else {"num_cpus": 1}
    options = {"batch_format": "pyarrow", "batch_size": BATCH}
    # A file is what one reader reads; small shares of a CPU, so that all stages have a place on the smallest node.
    paths = ray.data.from_items([{"path": path} for path in files], override_num_blocks=min(len(files), 4 * cpus))
    tables = paths.map_batches(partial(_read, corpus), batch_size=1, batch_format="pyarrow", num_cpus=0.1)
    parsed = tables.map_batches(
        Parse,
        fn_constructor_args=(target, schema.document_chunker),
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=cpus),
        num_cpus=0.2,
        **options,
    )
    return parsed.map_batches(
        Encode,
        fn_constructor_args=(schema.encoders, target.settings),
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=cluster.encoders or cpus),
        **encoding,
        **options,
    )


def _read(corpus: Corpus, paths: pa.Table) -> Iterator[pa.Table]:
    rows: list[tuple[str, File | str]] = []
    for path in paths["path"].to_pylist():
        for item in corpus.read(path):
            if item.problem:
                rows.append((item.name, item.problem))
            elif item.document:
                rows.append((item.name, File.of(item.document)))
            elif item.upload:
                rows.append((item.name, _file(item.upload)))
            if len(rows) == BATCH:
                yield raw(rows)
                rows = []
    yield raw(rows)


def _file(upload: Upload) -> File:
    return File(
        upload.path.read_bytes(), MEDIA_TYPES[upload.media_type], upload.id, url=upload.url, source=upload.source
    )


async def _written(table: Any, target: Target, schema: Schema, cluster: Cluster) -> Outcome:
    async with target.store().running() as store, store.loading(target.name):
        return await asyncio.to_thread(_write, table, target, schema, cluster.streams)


def _write(table: Any, target: Target, schema: Schema, streams: int) -> Outcome:
    results = table.map_batches(
        Write,
        fn_constructor_args=(target, schema.encoders),
        compute=ray.data.ActorPoolStrategy(size=streams),
        num_cpus=0.1,
        batch_format="pyarrow",
        batch_size=BATCH,
    )
    outcome, keys = Outcome(), list[Any]()
    for batch in results.iter_batches(batch_format="pyarrow", batch_size=None):
        outcome.states.update(batch["state"].to_pylist())
        outcome.points += sum(batch["points"].to_pylist())
        for row in batch.filter(compute.field("problem") != "").to_pylist():
            if len(outcome.problems) < NAMED_PROBLEMS:
                outcome.problems.append(f"{row['name']}: {row['problem']}")
        ids = (row["id"] for row in batch.to_pylist() if row["state"] in ("written", "duplicate"))
        keys.append(np.fromiter((hash(id) for id in ids), np.int64))
    all_keys = np.concatenate(keys or [np.empty(0, np.int64)])
    outcome.twice = len(all_keys) - len(np.unique(all_keys))
    return outcome
