from __future__ import annotations

from collections.abc import Iterator

import gpflow
import pytest

from .cases import CASES, Case


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(autouse=True)
def no_jitter() -> Iterator[None]:
    """Diagonal operators take no jitter and dense ones do: without any, both are the same."""
    config = gpflow.config.Config(jitter=0.0)
    with gpflow.config.as_context(config):
        yield
