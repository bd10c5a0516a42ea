"""Features of effects: products of functions of columns, Mercer's sum, unseen levels."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.kernels import Matern52

from interdomain.core.pairs import Kuf_in_domain
from interdomain.covariances import Kuu_operator
from interdomain.kernels import FiniteRank
from interdomain.models import StructuredSGPR
from interdomain.tables import Additive, AdditiveFeatures, CategoricalColumn, NumericColumn
from tests.conformance.helpers import assert_refused

COLUMNS = [
    NumericColumn([0.0, 1.0], margin=0.5, label="first"),
    CategoricalColumn([1.0, 2.0, 4.0], label="place"),
    NumericColumn([0.0, 2.0], margin=1.0, label="last"),
]
FREQUENCIES = {(0,): 2, (1,): 1, (2,): [[1], [3]], (0, 2): [[1, 1], [1, 2], [3, 1]], (0, 1): 2}


def effects(**options: object) -> tuple[Additive, AdditiveFeatures]:
    scales = {"variances": [0.9, 0.8, 0.7, 0.6, 0.5], "lengthscales": [0.3, 0.6]}
    kernel = Additive(COLUMNS, ["main", (0, 2), (0, 1)], **scales, **options)
    return kernel, AdditiveFeatures(kernel, FREQUENCIES)


def inputs(num_rows: int, seed: int = 0, *, levels: tuple[float, ...] = (1, 2, 4)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ends = rng.uniform(size=[num_rows, 2]) * [1.0, 2.0]
    return np.column_stack([ends[:, 0], rng.choice(levels, num_rows), ends[:, 1]])


def waves(turns: float, orders: list[int]) -> list[float]:
    return [
        np.sqrt(2) * function(2 * np.pi * j * turns)
        for j in orders
        for function in (np.cos, np.sin)
    ]


def test_kuf_is_products() -> None:
    """By a loop over rows; the functions of places by what they have to be: orthonormal over the
    levels, and orthogonal to the constant."""
    kernel, features = effects()
    X = inputs(7)
    place = COLUMNS[1].functions(COLUMNS[1].coordinates(X[:, 1]), 3).numpy()
    levels = COLUMNS[1].functions(np.arange(3), 2).numpy()
    np.testing.assert_allclose(levels @ levels.T / 3, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(np.sum(levels, axis=1), 0, atol=1e-14)
    np.testing.assert_array_equal(place[2], 0)
    for n, x in enumerate(X):
        # A box is longer than the data by the margin, half of it on either side.
        first, last = (x[0] + 0.25) / 1.5, (x[2] / 2 + 0.5) / 2.0
        expected = [1.0, *waves(first, [1, 2]), *place[:, n], *waves(last, [1, 3])]
        found = Kuf(features, kernel, X)[:, n].numpy()
        np.testing.assert_allclose(found[:12], expected, atol=1e-14)
        place_values, pair_values = found[12:24], found[24:]
        orders = FREQUENCIES[0, 2]
        products = [
            np.prod(pair)
            for j, k in orders
            for pair in itertools.product(waves(first, [j]), waves(last, [k]))
        ]
        np.testing.assert_allclose(pair_values, products, atol=1e-14)
        products = [np.prod(p) for p in itertools.product(waves(first, [1, 2]), place[:, n])]
        np.testing.assert_allclose(place_values, products, atol=1e-14)


def test_features_add_up_to_the_kernel() -> None:
    """Mercer's sum, at levels that were not seen too."""
    kernel, _ = effects(kernel_class=Matern52)
    many = AdditiveFeatures(kernel, {e: 40 if len(e) == 1 else 20 for e in kernel.effects})
    X = inputs(12, levels=(1, 2, 3, 4))
    prior = FiniteRank(kernel, many)
    np.testing.assert_allclose(prior(X), kernel(X), atol=1e-4)
    np.testing.assert_allclose(prior(X, full_cov=False), np.diag(prior(X)), rtol=1e-12)
    assert np.all(prior(X, full_cov=False) < kernel(X, full_cov=False))


def test_a_pass_computes_functions_of_a_column_once() -> None:
    """Of the three columns two have waves, in four of the five effects."""
    kernel, features = effects()
    X = inputs(6)

    @tf.function(autograph=False)
    def in_a_pass(X: tf.Tensor) -> tf.Tensor:
        return Kuf_in_domain(features, FiniteRank(kernel, features), X)

    np.testing.assert_allclose(in_a_pass(X), Kuf(features, kernel, X), rtol=1e-14)
    graph = in_a_pass.get_concrete_function(tf.TensorSpec([None, 3], X.dtype)).graph
    assert [op.type for op in graph.get_operations()].count("Cos") == 2


def test_unseen_levels_are_the_prior() -> None:
    """Of the effects of the column; the others are known."""
    kernel, features = effects()
    X = inputs(200)
    Y = np.sin(6 * X[:, :1]) + X[:, 1:2] + 0.01 * np.random.default_rng(1).normal(size=[200, 1])
    model = StructuredSGPR((X, Y), FiniteRank(kernel, features), features, noise_variance=1e-4)
    seen, unseen = X[:5].copy(), X[:5].copy()
    unseen[:, 1] = 3.0
    mean, variance = model.predict_f(unseen)
    explained = features.explained_variances(kernel).numpy()
    left = explained[2] + explained[4]  # those of the place, and of the place with the first
    _, known = model.predict_f(seen)
    assert np.all(known < 0.01)
    np.testing.assert_allclose(variance[:, 0], left, rtol=0.03)
    assert list(model.feature_parameters) == []


def test_some_of_the_features_of_a_prior() -> None:
    """They do as well as all; those of another table do not."""
    kernel, features = effects()
    data, prior = (inputs(20), np.ones([20, 1])), FiniteRank(kernel, features)
    few = AdditiveFeatures(kernel, dict.fromkeys(kernel.effects, 1))
    assert few.is_subset_of(features) and not features.is_subset_of(few)
    both = [StructuredSGPR(data, prior, own, noise_variance=0.1) for own in (few, features)]
    assert both[0].elbo() < both[1].elbo()
    other = Additive([NumericColumn([0.0, 5.0]), *COLUMNS[1:]], kernel.effects)
    for wrong in (Matern52(), Additive):
        for make in (AdditiveFeatures.for_kernel, AdditiveFeatures):
            with pytest.raises(ValueError, match="kernel must be an Additive kernel, found"):
                make(wrong, 20)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_inducing must be an integer of 1 or more"):
        AdditiveFeatures.for_kernel(kernel, "20")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kernel must have the columns and effects"):
        Kuf(few, other, data[0])


def test_for_kernel_takes_those_of_most_variance() -> None:
    """By brute force; but for the first of each effect and what does not fit any more."""
    kernel, _ = effects()
    features = AdditiveFeatures.for_kernel(kernel, 60)
    assert 55 <= features.num_inducing <= 60
    variances = {}
    wide = AdditiveFeatures(kernel, dict.fromkeys(kernel.effects, 9))
    diagonal = 1 / Kuu_operator(wide, kernel).diag_part().numpy()[1:]
    start = 0
    for effect, functions in zip(kernel.effects, wide.functions[1:], strict=True):
        rows = (functions + 1) // 2
        numeric = [slot for slot, column in enumerate(effect) if column != 1]
        own = diagonal[start : start + len(rows)]
        start += len(rows)
        levels = 3 if 1 in effect else 1
        for row, variance in zip(rows[:, numeric].tolist(), own, strict=True):
            key = (effect, *row)
            variances[key] = variances.get(key, 0.0) + variance / (2 ** len(numeric) * levels)
    taken = {
        (effect, *(row[slot] for slot, column in enumerate(effect) if column != 1))
        for effect, functions in features.by_effect()
        for row in ((functions + 1) // 2).tolist()
        if effect
    }
    # Levels are taken whole, with the mean of their variances.
    for effect, *orders in variances.keys() - taken:
        size = 2 ** len(orders) * (3 if 1 in effect else 1)
        same_size = [k for k in taken if 2 ** len(k[1:]) * (3 if 1 in k[0] else 1) >= size]
        later = [variances[k] for k in same_size if k[1:] and max(k[1:]) > 1]
        assert variances[(effect, *orders)] <= min(later, default=np.inf) * (1 + 1e-9)


def test_errors() -> None:
    kernel, _ = effects()
    new = AdditiveFeatures
    assert_refused(
        [
            (lambda: new(kernel, {**FREQUENCIES, (1, 2): 3}), r"one entry for each effect .*\(1"),
            (lambda: new(kernel, {**FREQUENCIES, (0,): [[0]]}), "frequencies must be 1 or more"),
            (lambda: new.for_kernel(kernel, 15), "num_inducing must be 18 or more"),
        ]
    )
