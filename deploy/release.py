"""Builds the release of HEAD: `python -m deploy.release [--tag vVERSION] [--out out/release]`.

Wheels and sources of server and client, the chart, the locked dependencies of images (`locks/`), a CycloneDX bill of
materials of each (`sbom/`) and SHA256SUMS. The bytes follow from the commit: files that git does not know have no part
in it, times are the commit's, and uv takes only what the index had then, which it must say (PyPI and its mirrors do).
"""

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
# The oldest Python of the project, and that of the images.
PYTHON = "3.11"
CYCLONEDX = "7.5.0"
# Images whose dependencies are locked; where torch comes from, the machine that builds chooses.
LOCKED = ("gateway", "retriever", "reranker", "classifier", "kg", "searcher", "evaluator")
# Those that run the bundled encoder, whose package is installed without what it asks for.
ENCODER = ("retriever", "reranker", "classifier", "kg")


def run(*argv: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> bytes:
    """A program's standard output."""
    return subprocess.run(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - our own


def version(folder: Path = ROOT) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def checkout(folder: Path) -> int:
    """Write the commit's files into `folder`; returns its time in seconds since 1970."""
    with tarfile.open(fileobj=io.BytesIO(run("git", "archive", "HEAD"))) as files:
        files.extractall(folder, filter="data")
    return int(run("git", "show", "--no-patch", "--format=%ct", "HEAD"))


def archive(file: Path, members: Mapping[str, tuple[bytes, int]], epoch: int) -> None:
    """Write a .tar.gz that follows from its members alone: bytes and mode by name."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=epoch, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, (content, mode) in sorted(members.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, epoch
            tar.addfile(info, io.BytesIO(content))


def repack(file: Path, epoch: int) -> None:
    """Remove the time of building from a .tar.gz."""
    with tarfile.open(file) as tar:
        members = {item.name: (content.read(), item.mode & 0o755) for item in tar if (content := tar.extractfile(item))}
    archive(file, members, epoch)


def chart(source: Path, out: Path, epoch: int) -> None:
    """Write the chart's package, as `helm package` lays it out, with the targets of its links."""
    folder = source / "deploy" / "helm" / "cragmesh"
    ignored = (folder / ".helmignore").read_text(encoding="utf-8").split()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    members = {
        f"cragmesh/{name}": (path.read_bytes(), 0o644)
        for name, path in files.items()
        if not any(fnmatch(path.name, pattern) for pattern in ignored)
    }
    archive(out / f"cragmesh-chart-{version(source)}.tgz", members, epoch)


def lock(source: Path, image: str, env: Mapping[str, str]) -> bytes:
    """Requirements of an image with the hashes of all their files, for each platform."""
    flags = ("--quiet", "--universal", "--python-version", PYTHON, "--generate-hashes", "--no-header", "--no-annotate")
    locked = run(UV, "pip", "compile", *flags, "pyproject.toml", "--extra", image, cwd=source, env=env)
    if image in ENCODER:
        encoder = "services/requirements-encoder.txt"
        locked += run(UV, "pip", "compile", *flags, "--no-deps", encoder, cwd=source, env=env)
    return locked


def sbom(source: Path, locked: Path, file: Path, env: Mapping[str, str]) -> None:
    """Write the bill of materials of locked requirements: a list, without their dependencies."""
    tool = (UV, "tool", "run", "--quiet", "--from", f"cyclonedx-bom=={CYCLONEDX}", "cyclonedx-py", "requirements")
    flags = ("--pyproject", "pyproject.toml", "--output-reproducible", "--no-validate", "-o", file.absolute())
    # The tool warns that a list has no dependencies.
    run(*tool, *flags, locked.absolute(), cwd=source, env={**env, "PYTHONWARNINGS": "ignore"})


def build(out: Path) -> None:
    """Write the release of HEAD into `out`, a new folder.

    Raises:
        FileExistsError: there is a release.
    """
    for folder in ("locks", "sbom"):
        (out / folder).mkdir(parents=True)
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place)
        epoch = checkout(source)
        then = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "UV_EXCLUDE_NEWER": then}
        for project in (source, source / "clients" / "python"):
            # The wheel is built from the source distribution, which shows that this one is whole.
            run(UV, "build", "--quiet", "--python", sys.executable, "--out-dir", out.absolute(), project, env=env)
        for file in out.glob("*.tar.gz"):
            repack(file, epoch)
        chart(source, out, epoch)
        for image in LOCKED:
            locked = out / "locks" / f"{image}.txt"
            locked.write_bytes(lock(source, image, env))
            sbom(source, locked, out / "sbom" / f"{image}.cdx.json", env)
    (out / ".gitignore").unlink(missing_ok=True)
    (out / "SHA256SUMS").write_text("".join(sums(out)), encoding="utf-8")


def sums(out: Path) -> Iterator[str]:
    """Lines as `sha256sum --check` reads them."""
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out).as_posix()}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="refuse where it is not v and the project's version")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "release")
    args = parser.parse_args()
    if args.tag not in (None, f"v{version()}"):
        sys.exit(f"error: the tag is {args.tag}, and the project's version {version()}")
    if run("git", "status", "--porcelain"):
        print("release: what is not committed is left out", file=sys.stderr)
    build(args.out)
    print((args.out / "SHA256SUMS").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
