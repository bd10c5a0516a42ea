"""Everything here needs GPflux, which the extras `deep`, `test` and `dev` bring."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("gpflux") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def keras() -> Iterator[Any]:
    """That of GPflux's models, with the type of GPflow's numbers."""
    from gpflow.keras import tf_keras

    before = tf_keras.backend.floatx()
    tf_keras.backend.set_floatx("float64")
    yield tf_keras
    tf_keras.backend.set_floatx(before)
