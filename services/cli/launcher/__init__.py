"""What a wheel of Cragmesh puts on an environment's path, as `cragmesh`: this, with the code in a folder below it.

`proto`, `services` and `lab` are names that others use as well, `proto` by a library of Google's. So an environment
never sees ours; a process of the mesh looks for them in that folder first, and so do the processes that it starts.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# A checkout has none: its root is on the path.
CODE = Path(__file__).parent / "code"


def enter() -> None:
    """Let this process, and those that it starts, import the code."""
    if CODE.is_dir():
        sys.path.insert(0, str(CODE))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(CODE), os.environ.get("PYTHONPATH"))))
    elif find_spec("proto.base") is None:
        sys.exit("another package of this environment is named `proto`: install Cragmesh as a wheel, or elsewhere")


def main() -> None:
    """The command `cragmesh`."""
    enter()
    from services.cli.main import app

    app()
