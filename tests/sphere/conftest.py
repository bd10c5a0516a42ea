from __future__ import annotations

from collections.abc import Iterator

import pytest
from mpmath import mp

from tests.sphere.references import DIGITS


@pytest.fixture(autouse=True)
def extended_precision() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield
