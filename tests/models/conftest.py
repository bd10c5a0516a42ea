from __future__ import annotations

from collections.abc import Iterator

import gpflow
import pytest


@pytest.fixture(autouse=True)
def no_jitter() -> Iterator[None]:
    """Diagonal blocks take none and the dense twin's do: without any, both are the same."""
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        yield
