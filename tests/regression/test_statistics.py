"""Sufficient statistics: the sums, and what can be done with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.regression import SufficientStatistics

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]


def test_statistics_are_the_sums_that_they_say(
    rows: Rows, whole: idm.models.StructuredSGPR
) -> None:
    statistics, (X, Y) = whole.statistics, rows
    kuf = gpflow.covariances.Kuf(whole.inducing_variable, whole.kernel, X)
    columns = np.concatenate([kuf, Y.T, np.ones((1, len(X)))])
    assert statistics.num_rows == len(rows[0])
    size, gram = len(statistics.sums["gram"]), columns @ columns.T
    for name, expected in (
        ("gram", gram[:size, :size]),
        ("products", gram[:size, size:]),
        ("targets", gram[size:, size:]),
    ):
        np.testing.assert_allclose(statistics.sums[name], expected, rtol=1e-13, atol=1e-11)
    # The prior variance is the kernel's variance, 1, times the sum of squared radii.
    expected = np.sum(whole.kernel(rows[0], full_cov=False))
    np.testing.assert_allclose(statistics.sums["diagonal"], [expected], rtol=1e-13)


def test_parts_add_up_and_can_be_taken_away(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR
) -> None:
    X, Y = rows
    of_all = whole.statistics
    first, second = (make_model((X[part], Y[part])) for part in (slice(50), slice(50, None)))
    together = first.statistics + second.statistics
    assert together.num_rows == len(X)
    np.testing.assert_allclose(together.sums["gram"], of_all.sums["gram"], rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(together.sums["products"], of_all.sums["products"], atol=1e-12)
    rest = of_all - first.statistics
    assert rest.num_rows == len(X) - 50
    np.testing.assert_allclose(rest.sums["gram"], second.statistics.sums["gram"], atol=1e-12)
    elbo = make_model(together).elbo()
    np.testing.assert_allclose(elbo, whole.elbo(), rtol=1e-13)


def test_a_saved_copy_is_the_same_to_the_last_bit(
    make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    statistics = whole.statistics
    statistics.save(tmp_path / "rows.statistics")
    loaded = SufficientStatistics.load(tmp_path / "rows.statistics")
    for name, array in statistics.sums.items():
        np.testing.assert_array_equal(loaded.sums[name], array)
    assert loaded.num_rows == statistics.num_rows
    assert loaded.description == statistics.description
    assert make_model(loaded).elbo() == make_model(statistics).elbo()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.statistics"]


def test_other_statistics_are_not_added(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR
) -> None:
    statistics = whole.statistics
    linear = gpflow.mean_functions.Linear(np.ones((2, 1)))
    for arguments, message in (
        ({"scale": 0.8}, r"kernel.weight_variances is 0.69\d+ in one and 0.8"),
        ({"mean_function": linear}, "mean function is 'constant' in one and 'linear' in the other"),
    ):
        other = make_model(rows, **arguments).statistics
        for combined in (lambda o=other: statistics + o, lambda o=other: statistics - o):
            with pytest.raises(ValueError, match=message):
                combined()
    with pytest.raises(TypeError):
        statistics + 1
    with pytest.raises(ValueError, match="211 rows to take away from 5"):
        make_model((rows[0][:5], rows[1][:5])).statistics - statistics


def test_a_model_refuses_statistics_of_features_with_the_same_parameters(rows: Rows) -> None:
    """Another kernel, other degrees: nothing that a list of parameters would tell."""

    def make(data: Any, degrees: list[int], **arguments: Any) -> idm.models.StructuredSGPR:
        kernel = idm.kernels.SphericalMatern32(**arguments)
        for parameter in (kernel.weight_variances, kernel.bias_variance):
            gpflow.set_trainable(parameter, False)
        harmonics = idm.inducing_variables.SphericalHarmonics(2, degrees)
        return idm.models.StructuredSGPR(data, kernel, harmonics, progress=False)

    statistics = make(rows, [0, 1, 2], active_dims=[0]).statistics
    assert np.isfinite(make(statistics, [0, 1, 2], active_dims=[0]).elbo())
    for degrees, column, message in (
        ([0, 1, 3], 0, r"inducing_variable.* is .* in one and .* in the other"),
        ([0, 1, 2], 1, r"kernel.active_dims is \[0\] in one and \[1\] in the other"),
    ):  # degree 3 has as many harmonics as 2
        with pytest.raises(ValueError, match=message):
            make(statistics, degrees, active_dims=[column]).elbo()


def test_files_that_cannot_be_right_are_refused(
    whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    path = tmp_path / "pass.npz"
    whole.statistics.save(path)
    good, content = dict(np.load(path)), path.read_bytes()
    np.savez(path, **{name: array for name, array in good.items() if name != "products"})
    with pytest.raises(ValueError, match=f"path: {path} .*KeyError: 'products'"):
        SufficientStatistics.load(path)
    path.write_bytes(content[:-100])
    with pytest.raises(ValueError, match=f"path: {path} holds no sufficient statistics"):
        SufficientStatistics.load(path)
    with pytest.raises(FileNotFoundError):
        SufficientStatistics.load(tmp_path / "missing.npz")
