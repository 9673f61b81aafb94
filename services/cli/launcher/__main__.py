"""`python -m cragmesh services.gateway`: a module of the installed code as a program."""

import runpy
import sys

from . import enter

if len(sys.argv) < 2:
    sys.exit("usage: python -m cragmesh MODULE [ARGUMENTS]")
enter()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
