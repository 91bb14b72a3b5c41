"""A bench that is set up and cleared away."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import House
from tests.core.confirmations.bench import Bench


@pytest.fixture
async def bench(house: House) -> AsyncIterator[Bench]:
    bench = Bench(house)
    await bench.start()
    yield bench
    await bench.stop()
