"""`python -m services.cli`, for a checkout that is not installed."""

from services.cli.main import app

app(prog_name="cragmesh")
