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
    """What the library would compile is evaluated as it is: tracing takes a hundred times as long
    as evaluating once."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
