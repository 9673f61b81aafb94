"""A site for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.site import Site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().served() as running:
        yield running
