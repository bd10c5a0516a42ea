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
from interdomain.streaming.sources import make_source

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
    """The sums of one pass and the gradients of another: 100 rows, then 70."""
    X, Y = rows
    first, fewer = (X[:100], Y[:100]), (X[:70], Y[:70])
    message = "^data: the first pass read 100 rows, and now 70; pass rows that are the same"
    model = make_model(generated([first, fewer]), frozen=False)
    with pytest.raises(ValueError, match=message):
        with_gradients(model)
    # Compiled, and found at the third pass.
    model = make_model(generated([first, first, fewer]), frozen=False)
    with pytest.raises(ValueError, match=message):
        idm.training.fit(model, steps=3, progress=False)
    # In passes of their own.
    model = make_model(generated([first, fewer]))
    model.elbo()
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match=message):
        model.elbo()
    # The subset is of one pass, the sums of another.
    model = make_model(generated([first, fewer]))
    model.subset_model(10)
    with pytest.raises(ValueError, match=message):
        model.elbo()


def test_the_same_rows_in_another_order_are_the_same(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR
) -> None:
    model = make_model(tf.data.Dataset.from_tensor_slices(rows).shuffle(211, seed=1).batch(13))
    model.kernel.bias_variance.assign(0.5)
    before = model.elbo()
    model.kernel.bias_variance.assign(whole.kernel.bias_variance)
    np.testing.assert_allclose(model.elbo(), whole.elbo(), rtol=1e-8)
    assert model.elbo() != before


def test_rows_that_are_mended_in_place_may_be(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR
) -> None:
    X, Y = (array.copy() for array in rows)
    model = make_model((X, Y))
    X[7] = np.nan
    model.subset_model(20)  # of the rows that are finite
    with pytest.raises(InvalidRowsError):
        model.elbo()
    X[7] = rows[0][7]
    np.testing.assert_array_equal(model.elbo(), whole.elbo())
    X[7] += 1.0
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match="read 211 rows, and now as many others"):
        model.elbo()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_and_graphs_count_the_same(dtype: type) -> None:
    """Numbers of other types are converted as the features see them; those that only one of NumPy
    and TensorFlow takes for zero are zero."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(0, 5, (60, 1)) * 1e-40
    X[3], X[4], X[5] = 1e-42, 0.0, -0.0

    def add(tally: tf.Tensor, batch: Rows) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(counted, [tally, *batch], tf.uint64), [2])

    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        for data in ((X, Y), tf.data.Dataset.from_tensor_slices((X, Y)).batch(9)):
            source = make_source(data, 7)
            tally = no_rows()
            for batch in source.read():
                tally = counted(tally, *batch)
            total = source.dataset().reduce(tf.constant(no_rows()), add)
            np.testing.assert_array_equal(total, tally)
            assert tally[0] == 60


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
