"""Rows that are others at a later pass: never mixed with those of the first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.streaming import InvalidRowsError
from interdomain.streaming.first_pass import counted, no_rows

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]


def generated(passes: list[Rows]) -> tf.data.Dataset:
    """A Dataset of one pass after another, the last of them for ever."""
    number = iter(range(10**6))

    def generate() -> Any:
        yield passes[min(next(number), len(passes) - 1)]

    specs = tuple(tf.TensorSpec([None, n], tf.float64) for n in (2, 1))
    return tf.data.Dataset.from_generator(generate, output_signature=specs)


def with_gradients(model: idm.models.StructuredSGPR) -> Any:
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    return tape.gradient(loss, model.trainable_variables)


def test_passes_over_other_rows_are_not_mixed(rows: Rows, make_model: Make) -> None:
    """The sums of one pass and the gradients of another: 100 rows, then 70, or as many others."""
    X, Y = rows
    first, fewer, others = ((X[a:b], Y[a:b]) for a, b in ((0, 100), (0, 70), (100, 200)))
    for second, message in (
        (fewer, "data: the first pass read 100 rows, and now 70; pass rows that are the same"),
        (others, "data: the first pass read 100 rows, and now as many others"),
    ):
        model = make_model(generated([first, second]), frozen=False)
        with pytest.raises(ValueError, match=f"^{message}"):
            with_gradients(model)
        # Compiled, and found at the third pass.
        model = make_model(generated([first, first, second]), frozen=False)
        with pytest.raises(ValueError, match=f"^{message}"):
            idm.training.fit(model, steps=3, progress=False)
        # In passes of their own.
        model = make_model(generated([first, second]))
        model.elbo()
        model.kernel.bias_variance.assign(0.5)
        with pytest.raises(ValueError, match=f"^{message}"):
            model.elbo()
        # The subset is of one pass, the sums of another.
        model = make_model(generated([first, second]))
        model.subset_model(10)
        with pytest.raises(ValueError, match=f"^{message}"):
            model.elbo()


def test_the_same_rows_in_another_order_are_the_same(rows: Rows, make_model: Make) -> None:
    shuffled = tf.data.Dataset.from_tensor_slices(rows).shuffle(211, seed=1).batch(13)
    expected = with_gradients(make_model(rows, frozen=False))
    found = with_gradients(make_model(shuffled, frozen=False))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_rows_that_are_mended_in_place_may_be(rows: Rows, make_model: Make) -> None:
    X, Y = (array.copy() for array in rows)
    model = make_model((X, Y))
    X[7] = np.nan
    model.subset_model(20)  # of the rows that are finite
    with pytest.raises(InvalidRowsError):
        model.elbo()
    X[7] = rows[0][7]
    np.testing.assert_array_equal(model.elbo(), make_model(rows).elbo())
    X[7] += 1.0
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match="read 211 rows, and now as many others"):
        model.elbo()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_and_graphs_count_the_same(make_model: Make, dtype: type) -> None:
    """Numbers of other types are converted as the features see them; those that only one of NumPy
    and TensorFlow takes for zero are zero."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(0, 5, (60, 1))
    X[3], X[4], X[5] = 1e-42, 0.0, -0.0
    with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=1e-4)):
        given = X, Y.astype(np.float64) * 1e-40
        for data in (given, tf.data.Dataset.from_tensor_slices(given).batch(7)):
            model = make_model(data, frozen=False)
            compiled = tf.function(model.training_loss, autograph=False)
            with_gradients(model)
            model.kernel.bias_variance.assign(0.5)
            assert np.isfinite(compiled())
            model.kernel.bias_variance.assign(0.6)
            assert np.isfinite(compiled())


def test_the_checksum() -> None:
    """Of the rows, not of the columns, and of nothing but them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    expected = counted(no_rows(), X, Y)
    in_parts = counted(counted(no_rows(), X[30:], Y[30:]), X[:30], Y[:30])
    np.testing.assert_array_equal(in_parts, expected)
    order = rng.permutation(50)
    np.testing.assert_array_equal(counted(no_rows(), X[order], Y[order]), expected)
    changed = X.copy()
    changed[7, 1] = np.nextafter(changed[7, 1], 9)
    swapped, doubled = X.copy(), X.copy()
    swapped[[3, 4]], doubled[3] = X[[4, 3]], X[4]
    for other in ((changed, Y), (X[:, ::-1], Y), (swapped, Y), (doubled, Y), (-X, Y), (X, -Y)):
        found = counted(no_rows(), *other)
        assert found[0] == 50 and found[1] != expected[1]
    np.testing.assert_array_equal(counted(no_rows(), X[:0], Y[:0]), no_rows())


def test_a_file_does_not_hide_other_rows(rows: Rows, make_model: Make, tmp_path: Path) -> None:
    X, Y = rows
    model = make_model(generated([rows, (X[:100], Y[:100])]), checkpoint_path=tmp_path / "pass.npz")
    model.elbo()
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match="the first pass read 211 rows, and now 100"):
        model.elbo()
