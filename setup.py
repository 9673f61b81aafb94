"""Which packages an installation has; all else is in pyproject.toml.

A wheel installs one name, `cragmesh`: the launcher, with the code below it (`services/cli/launcher`). A checkout that
is installed to be edited has the folders of the code on the path as they are.
"""

import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup

CODE = "cragmesh.code"
SUFFIXES = "txt yaml json jsonl csv lark npz md png proto html j2 js css svg safetensors"

packages = find_namespace_packages(include=["proto*", "services*", "lab*"], exclude=["services.cli.launcher*"])
launcher = "services/cli/launcher"
below = ""
folders = {"cragmesh": launcher}
if "editable_wheel" not in sys.argv:
    below = f"{CODE}."
    folders[CODE] = "."
    packages = [below + name for name in packages]
# An image installs the dependencies before there is any code.
if Path(launcher).is_dir():
    packages.append("cragmesh")

setup(
    packages=packages,
    package_dir=folders,
    package_data={
        "": [*(f"*.{suffix}" for suffix in SUFFIXES.split()), "py.typed"],
        f"{below}services.generator": ["plugin/*/*"],
        # Named by models: with a dot in a name a folder is no package.
        f"{below}services.gateway.data.reports": ["*/*/*"],
        # A domain is a folder of data, no package.
        f"{below}services.kg.domains": ["*/*", "*/*/*"],
    },
)
