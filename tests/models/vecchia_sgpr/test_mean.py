"""Mean functions against generalised least squares by dense algebra."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.mean_functions import Constant, Linear

from interdomain.models import StructuredSGPR
from interdomain.models.vecchia_sgpr.mean import solve_mean
from tests.models.vecchia_sgpr.test_vecchia_sgpr import NOISE, NUM_ROWS, harmonics, make, rows

LEVEL = 50.0


def means() -> dict[str, tuple[Any, int]]:
    """Mean functions, and the number of their columns among (x_1, x_2, 1) from behind."""
    return {
        "constant": (Constant(np.zeros(2)), 1),
        "linear": (Linear(np.zeros([2, 2]), np.zeros(2)), 3),
    }


@pytest.mark.parametrize("with_features", [False, True])
def test_weights_of_highest_evidence(with_features: bool) -> None:
    """Given all rows before, they are those of the exact GP."""
    block = harmonics() if with_features else ()
    X, Y = rows()
    for name, (mean, count) in means().items():
        data = X, Y + LEVEL
        model = make(block, data=data, mean_function=mean, num_neighbours=NUM_ROWS)
        places, targets = model.arrays
        K = np.asarray(model.local_kernel(places)) + NOISE * np.eye(NUM_ROWS)
        if with_features:
            K = K + np.asarray(model.kernel(places))
        H = np.c_[places, np.ones(NUM_ROWS)][:, -count:]
        both = np.c_[targets, H]
        S = both.T @ np.linalg.solve(K, both)
        solve_mean(model)
        expected = np.linalg.solve(S[2:, 2:], S[2:, :2])
        parts = (
            [mean.A.numpy(), mean.b.numpy()[None]] if name == "linear" else [mean.c.numpy()[None]]
        )
        np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-6, err_msg=name)
        sums, reference = model.residual_sums()
        both[:, :2] -= reference
        np.testing.assert_allclose(sums, both.T @ np.linalg.solve(K, both), rtol=1e-6, atol=1e-7)
        solve_mean(model, by_rows=True)
        least = np.linalg.lstsq(H, targets, rcond=None)[0]
        np.testing.assert_allclose(mean(places), H @ least, rtol=1e-9, err_msg=name)


def test_what_is_not_trained_stays() -> None:
    prior = gpflow.mean_functions.Constant(np.ones(2))
    gpflow.set_trainable(prior, False)
    model = make(mean_function=prior)
    solve_mean(model)
    np.testing.assert_array_equal(prior.c, 1.0)


def test_sums_without_neighbours() -> None:
    """The sums of a StructuredSGPR, whose noise variance is in the sums as a factor."""
    (kernel, features), mean = harmonics(), Linear(np.zeros([2, 2]), np.zeros(2))
    X, Y = rows()
    arguments: dict[str, Any] = {"mean_function": mean, "noise_variance": NOISE, "progress": False}
    model = StructuredSGPR((X, Y + LEVEL), kernel, features, **arguments)
    sums, reference = model.residual_sums()
    both = np.c_[Y + LEVEL - reference, X, np.ones(NUM_ROWS)]
    K = np.asarray(kernel(X)) + NOISE * np.eye(NUM_ROWS)
    np.testing.assert_allclose(
        sums, NOISE * both.T @ np.linalg.solve(K, both), rtol=1e-6, atol=1e-7
    )
