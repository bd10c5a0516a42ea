"""Rows and models of them: as small as what is tested allows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interdomain as idm
from tests.parts import with_harmonics

NUM_ROWS, NUM_COLUMNS = 211, 2


@pytest.fixture(autouse=True)
def equal(no_jitter: None) -> None:
    """GPflow's SGPR adds jitter to Kuu, whatever its structure."""


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, NUM_COLUMNS))
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(NUM_ROWS, 1))


@pytest.fixture(scope="module")
def make_model() -> Callable[..., idm.models.StructuredSGPR]:
    """A model with harmonics whose features are frozen, unless ``frozen=False``."""

    def make(data: Any, *, frozen: bool = True, scale: float = 0.7, **arguments: Any) -> Any:
        kernel = idm.kernels.SphericalMatern32(weight_variances=np.full(NUM_COLUMNS, scale))
        parts = with_harmonics(kernel, 3, NUM_COLUMNS, fixed=frozen)
        defaults = {"noise_variance": 0.1, "batch_size": 10, "progress": False}
        return idm.models.StructuredSGPR(data, *parts, **(defaults | arguments))

    return make


@pytest.fixture(scope="module")
def whole(rows: Any, make_model: Any) -> idm.models.StructuredSGPR:
    """The model of all rows, after its pass: to compare with, not to be changed."""
    model = make_model(rows)
    assert model.statistics.num_rows == NUM_ROWS
    return model
