from collections.abc import Iterator

import pytest
import tensorflow as tf
from mpmath import mp

from tests.families.sphere.mathematics.references import DIGITS


@pytest.fixture(autouse=True)
def extended_precision() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


@pytest.fixture
def eager() -> Iterator[None]:
    """Compiled functions of the library run eagerly: tracing takes a hundred times as long as one
    call."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
