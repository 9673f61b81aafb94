"""The commands of `cragmesh`, some of which are only where `lab` is installed."""

from typing import Any

from typer.core import TyperGroup

from services.cli.console import fail
from services.cli.ending import PROBLEM


class Commands(TyperGroup):
    """Commands of which those that measure and teach say in words that they cannot run in a service's image."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "lab":
                raise
            fail(
                f"`cragmesh {ctx.invoked_subcommand}` measures or teaches, and the package `lab` that does so is not "
                "installed here: images of services lack it. Use the image `cragmesh/evaluator` or `cragmesh/trainer`, "
                "or a checkout of the project",
                PROBLEM,
            )
