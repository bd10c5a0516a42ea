"""The local kernel that fit chooses, starts from the data, and intervals."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern12, Matern32, Matern52

import interdomain as idm
from interdomain.models import VecchiaSGPR
from interdomain.models.vecchia_sgpr.choice import LocalTraining
from interdomain.models.vecchia_sgpr.samples import Samples

NUM_ROWS = 700


def drawn(kernel: Any, seed: int = 0, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two columns, and a draw of a GP with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (NUM_ROWS, 2))
    root = np.linalg.cholesky(np.asarray(kernel(X)) + 1e-8 * np.eye(NUM_ROWS))
    f = root @ rng.normal(size=(NUM_ROWS, 1))
    return X, f + noise * rng.normal(size=f.shape)


@pytest.mark.parametrize("given", [False, True])
def test_units_do_not_matter(given: bool) -> None:
    """Predictions of X in millionths and Y in millions are the same, a kernel with GPflow's
    defaults and the floor of noise included; a linear mean as well."""
    X, Y = drawn(Matern32(lengthscales=[0.3, 0.6]))
    new, moments = X[:20] + 0.01, []
    for x_scale, y_scale in ((1.0, 1.0), (1e6, 1e-6)):
        mean = gpflow.mean_functions.Linear(np.zeros([2, 1]), np.zeros(1)) if given else None
        kernel = Matern32(lengthscales=np.ones(2)) if given else None
        model = VecchiaSGPR(
            (x_scale * X, y_scale * Y),
            local_kernel=kernel,
            num_neighbours=8,
            mean_function=mean,
            progress=False,
        )
        result = idm.fit(model, progress=False)
        assert (result.local_kernels is None) == given
        mean_of_y, variance = model.predict_y(x_scale * new)
        moments.append((mean_of_y / y_scale, variance / y_scale**2))
    for mine, other in zip(*moments, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(moments[0][0], Y[:20], atol=0.5)


def test_training_restarts_where_rows_look_like_noise() -> None:
    """A given kernel keeps its class, and gets other values if they are clearly likelier. If not,
    its values stay."""
    X, Y = drawn(Matern32(lengthscales=[0.3, 0.6]))
    kernel = Matern32(1e-6, [5.0, 5.0])
    noise = {"noise_variance": np.var(Y), "merge": "off"}
    model = VecchiaSGPR((X, Y), local_kernel=kernel, **noise, progress=False)
    training, samples = LocalTraining(model, 0), Samples(model, model.mean_function)
    training.take()
    assert training.restart(samples) and model.local_kernel is kernel
    assert kernel.variance.numpy() > 0.2 and model.likelihood.variance.numpy() < 0.3 * np.var(Y)
    values = training.conditionals.values()
    assert not training.restart(samples)
    for before, after in zip(values, training.conditionals.values(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_kernel_is_chosen() -> None:
    """A rough function gets the rough kernel and a smooth one a smoother kernel; the fit says what
    was compared, and a second fit keeps the kernel."""
    for kernel, names in ((Matern12, {"Matern12"}), (Matern52, {"Matern52", "TwoScales"})):
        X, Y = drawn(kernel(lengthscales=[0.4, 0.8]), noise=0.01)
        model = VecchiaSGPR((X, Y), num_neighbours=10, progress=False)
        compared = idm.fit(model, progress=False).local_kernels
        assert compared is not None and compared.kept in names
        assert set(compared.densities) == {"Matern12", "Matern32", "Matern52", "TwoScales"}
        assert type(model.local_kernel).__name__ == compared.kept and compared.kept in str(compared)
        best = max(compared.densities, key=lambda name: compared.densities[name])
        assert best == compared.kept and compared.thinnings == (1, 8)
    before = model.local_kernel
    assert idm.fit(model, progress=False).local_kernels is None and model.local_kernel is before


def test_the_kernel_is_chosen_for_some_columns() -> None:
    """The kernel sees no other column, before and after it is chosen."""
    X, Y = drawn(Matern52(lengthscales=0.3))
    more = np.column_stack([np.arange(len(X)), X])
    model = VecchiaSGPR((more, Y), local_columns=[1, 2], num_neighbours=8, progress=False)
    assert model.local_kernel.lengthscales.shape == (2,)
    compared = idm.fit(model, progress=False).local_kernels
    assert compared is not None and model.local_kernel.active_dims.tolist() == [1, 2]
    mean = model.predict_f(more[:9])[0].numpy()
    np.testing.assert_allclose(mean, Y[:9], atol=0.3)
    np.testing.assert_array_equal(mean, model.predict_f(more[:9] * [0, 1, 1])[0])
    with pytest.raises(ValueError, match="local_columns must be None with a local_kernel"):
        VecchiaSGPR((X, Y), local_kernel=Matern52(), local_columns=[0])


def test_rows_as_far_as_new_ones() -> None:
    """Rows that are compared are conditioned on rows as far from them as new rows are."""
    X, Y = drawn(Matern32(lengthscales=0.4))
    in_gap = np.linalg.norm(X, axis=1) < 0.4
    model = VecchiaSGPR((X[~in_gap], Y[~in_gap]), num_neighbours=6, progress=False)
    samples = idm.models.vecchia_sgpr.samples.Samples(model, model.mean_function, X[in_gap])
    points, known, *_ = samples.draw(200, 0, samples.levels_compared)
    lengths = model.local_kernel.lengthscales.numpy()
    scaled = points / lengths
    distances = np.linalg.norm(scaled[:, :-1] - scaled[:, -1:], axis=-1).min(axis=1)
    expected = np.linalg.norm((X[in_gap][:, None] - X[~in_gap]) / lengths, axis=-1).min(axis=1)
    assert np.all(known) and samples.levels_compared == (0,)
    quantiles = np.linspace(0.3, 0.9, 4)
    np.testing.assert_allclose(
        np.quantile(distances, quantiles), np.quantile(expected, quantiles), rtol=0.25
    )
    result = idm.fit(model, progress=False, options={"predict_at": X[in_gap]})
    assert result.local_kernels is not None and result.local_kernels.thinnings == (0,)
    for wrong, message in ((np.ones([3, 3]), "found 3 columns"), (np.full([2, 2], np.nan), "NaN")):
        with pytest.raises(ValueError, match=message):
            idm.fit(model, progress=False, options={"predict_at": wrong})


def test_intervals_fit() -> None:
    """Trained with few neighbours, the scores of new rows have a deviation of about one."""
    X, Y = drawn(Matern32(lengthscales=0.3), noise=0.1)
    model = VecchiaSGPR((X[:500], Y[:500]), num_neighbours=3, progress=False)
    idm.fit(model, progress=False)
    mean, variance = model.predict_y(X[500:])
    deviation = float(np.std((Y[500:] - mean) / np.sqrt(variance)))
    assert 0.85 < deviation < 1.15
