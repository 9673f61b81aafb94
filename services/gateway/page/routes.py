"""Routes of the page: `/`, its files below `/page`, and the reports that it shows. None is part of the API."""

import asyncio
from importlib.resources import as_file, files
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import TypeAdapter

from services.gateway.page import assets
from services.gateway.page.reports import ReportInfo, Reports, Root
from services.gateway.settings import GatewaySettings

READ = ["GET", "HEAD"]
# Shipped as data, but not in container images.
SHIPPED = ("gateway", "data", "reports")
# Where `make eval` writes, below the folder that the gateway was started in.
MEASURED = Path("out", "eval")
# A report may be written again at any time.
NOT_STORED = assets.SECURITY_HEADERS | {"cache-control": "no-store"}

_LISTED = TypeAdapter(list[ReportInfo])


def routes(settings: GatewaySettings) -> APIRouter:
    """The page's routes. Its files are read now, so that only requests for reports wait for a disk."""
    static = assets.load()
    reports = Reports(_roots(settings))
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=READ)
    async def page(request: Request) -> Response:
        return assets.send(request, static[assets.INDEX])

    @router.api_route("/page/reports", methods=READ)
    async def page_reports() -> Response:
        listed = await asyncio.to_thread(reports.listed)
        return Response(_LISTED.dump_json(listed), media_type=assets.MEDIA_TYPES["json"], headers=NOT_STORED)

    @router.api_route("/page/reports/{report}/{name}", methods=READ)
    async def page_report(report: str, name: str) -> Response:
        file = await asyncio.to_thread(reports.read, report, name)
        if file is None:
            raise HTTPException(404)
        content, media_type = file
        return Response(content, media_type=media_type, headers=NOT_STORED)

    @router.api_route("/page/{name}", methods=READ)
    async def page_file(name: str, request: Request) -> Response:
        item = static.get(name)
        if item is None:
            raise HTTPException(404)
        return assets.send(request, item)

    return router


def _roots(settings: GatewaySettings) -> tuple[Root, ...]:
    if settings.reports_dir is not None:
        return (Root("Reports", settings.reports_dir),)
    with as_file(files("services").joinpath(*SHIPPED)) as shipped:
        return (Root("Measured here", MEASURED.absolute()), Root("Shipped with Cragmesh", shipped))
