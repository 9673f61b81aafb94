"""The way to a generator, whatever its address looks like."""

import httpx
import pytest
from pydantic import HttpUrl

from services.kit.client import http_client
from services.kit.generator import generator, model_at
from services.kit.settings import KitSettings, MeshUrls

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("url", ["http://g", "http://g/", "http://g/v1", "http://g/v1/"])
async def test_the_address_may_end_in_the_apis_version(url: str) -> None:
    requests: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"data": [{"id": "m"}]})

    async with http_client(httpx.MockTransport(reply)) as http:
        settings = MeshUrls(generator_url=HttpUrl(url), generator_api_key="s3cret", generator_model="")
        await generator(settings, http).models(allow_s=1)
        await model_at(url, http, name="judge").models(allow_s=1)
    assert [str(request.url) for request in requests] == ["http://g/v1/models"] * 2
    assert [request.headers.get("authorization") for request in requests] == ["Bearer s3cret", None]


async def test_a_breaker_is_as_patient_as_the_settings_say() -> None:
    breaker = KitSettings(breaker_threshold=2).breaker()
    async with http_client() as http:
        assert generator(MeshUrls(), http, breaker=breaker).client.breaker is breaker
    breaker.failed()
    assert breaker.state == "closed"
    breaker.failed()
    assert breaker.state == "open"
