"""What of the moments of f is computed outside of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from interdomain.sites.rows import variances_of_q


def test_variances_in_blocks_of_a_triangle() -> None:
    rng = np.random.default_rng(0)
    for size, dtype in ((1, float), (127, float), (128, float), (300, float), (300, np.float32)):
        root = np.tril(rng.normal(size=(2, size, size))).astype(dtype)
        whitened = rng.normal(size=(size, 17)).astype(dtype)
        covariance = np.einsum("lik,ljk->lij", root, root, dtype=np.float64)
        expected = np.einsum("in,lij,jn->nl", whitened, covariance, whitened, dtype=np.float64)
        found = variances_of_q(root, whitened)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is float else 1e-4)


def test_a_q_that_is_far_off_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    found = variances_of_q(np.full([1, 1, 1], 1e200), np.full([1, 3], 1e200))
    assert np.all(np.isinf(found)) and not recwarn.list
