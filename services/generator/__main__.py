"""`python -m services.generator environment | prepare | doctor | serve`."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from services.generator.doctor import examine, require
from services.generator.environment import create
from services.generator.errors import GeneratorError
from services.generator.launch import serve as serve_profile
from services.generator.prepare import Preparation
from services.generator.progress import Reporter
from services.generator.settings import GeneratorSettings, project_root

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _read_environment() -> None:
    # As `cragmesh` does. vLLM's image has no such package: its environment is its container's.
    if find_spec("dotenv"):
        from dotenv import load_dotenv

        load_dotenv(project_root() / ".env")


@app.command()
def environment(
    path: Annotated[
        Path | None, typer.Option(help="Its folder; the one of the settings' interpreter if not given.")
    ] = None,
) -> None:
    """Create vLLM's environment, or complete one that was interrupted."""
    create(path or GeneratorSettings().interpreter.parent.parent, Reporter())


@app.command()
def prepare(
    int8: Annotated[
        str | None, typer.Option("--int8", metavar="MODEL", help="Only make int8 weights of a model that is there.")
    ] = None,
    original: Annotated[
        bool, typer.Option("--original", help="Have the weights of before int8 too, to train or compare with.")
    ] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Let CRAGMESH_MODEL=auto choose again.")] = False,
) -> None:
    """Have the embedded model that CRAGMESH_MODEL names ready; or the int8 weights of a model of one's own."""
    preparation = Preparation(GeneratorSettings(), Reporter(), original=original)
    if int8 is None:
        preparation.embedded(anew=anew)
    else:
        preparation.int8(int8)


Profile = Annotated[
    str | None, typer.Option(help="cpu, gpu1, t4, t4-70b or a file's path; the settings' if not given.")
]


@app.command()
def doctor(profile: Profile = None) -> None:
    """Say what NVIDIA cards there are, what the profile needs, and whether it can be served."""
    report = examine(_settings(profile=profile))
    print("\n".join([*report.lines, *(f"cannot work: {refusal}" for refusal in report.refusals)]))
    if report.refusals:
        raise typer.Exit(1)
    print("it can be served")


@app.command()
def serve(
    profile: Profile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on.")] = None,
) -> None:
    """Become vLLM's server."""
    settings = _settings(profile=profile, host=host, port=port)
    print("\n".join(require(settings)), file=sys.stderr, flush=True)
    serve_profile(settings)


def _settings(**given: str | int | None) -> GeneratorSettings:
    return GeneratorSettings.model_validate({key: value for key, value in given.items() if value is not None})


def main() -> None:
    """Run the command line; what the user can mend is told in words, with status 1."""
    try:
        app()
    except (GeneratorError, OSError) as error:
        sys.exit(f"error: {error}")
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        sys.exit("error: " + "\n       ".join(lines))


if __name__ == "__main__":
    main()
