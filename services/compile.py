"""`python -m cragmesh services.compile PACKAGE ...`: an image compiles what these packages import, and nothing else.

A module that asks for a library which this image lacks stays as it is.
"""

import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

if __name__ == "__main__":
    for package in sys.argv[1:]:
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                with suppress(ModuleNotFoundError):
                    import_module(module.name)
