import numpy as np
import pytest


@pytest.fixture(autouse=True)
def exact(no_jitter: None) -> None:
    """Diagonal blocks take no jitter and the dense twin's do."""


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(25, 2))
    return X, np.sin(2 * X[:, :1]) + 0.5 * X[:, 1:] + 0.1 * rng.normal(size=(25, 1))
