"""Passes over the data: in any batches, interrupted, and over rows that are not finite."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.streaming import InvalidRowsError, SufficientStatistics, pass_files
from interdomain.streaming.sources import ArraySource

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]


def same_bits(one: SufficientStatistics, other: SufficientStatistics) -> bool:
    return (
        one.num_rows == other.num_rows
        and np.array_equal(one.gram.value, other.gram.value)
        and np.array_equal(one.diagonal.value, other.diagonal.value)
    )


def test_arrays_maps_of_files_and_datasets_give_the_same(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    X, Y = rows
    expected = whole.statistics
    assert same_bits(make_model(rows).statistics, expected)
    for name, array in {"X": X, "Y": Y}.items():
        np.save(tmp_path / f"{name}.npy", array)
    maps = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "Y"))
    assert same_bits(make_model(maps).statistics, expected)
    # Batches of a dataset are cut again, to the same size.
    for size in (7, 500):
        dataset = tf.data.Dataset.from_tensor_slices(rows).batch(size)
        assert same_bits(make_model(dataset).statistics, expected)


def test_any_batch_size(rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR) -> None:
    expected = whole.statistics.gram.value
    for batch_size in (1, 97, 211, 10_000, None):
        found = make_model(rows, batch_size=batch_size).statistics
        assert found.num_rows == len(rows[0])
        np.testing.assert_allclose(found.gram.value, expected, rtol=1e-13, atol=1e-12)


def test_memory_does_not_grow_with_the_rows(make_model: Make) -> None:
    """Rows that no memory holds (1.6 TB) can be given; what is read is read in batches."""

    class Endless:
        def __init__(self, columns: int) -> None:
            self.shape = (10**11, columns)
            self.read: list[int] = []

        def __getitem__(self, rows: slice) -> np.ndarray:
            self.read.append(rows.stop - rows.start)
            if len(self.read) > 20:
                raise InterruptedError
            return np.ones((rows.stop - rows.start, self.shape[1]))

    X, Y = Endless(2), Endless(1)
    with pytest.raises(InterruptedError):
        make_model((X, Y)).elbo()
    assert set(X.read) == {10}


class Breaking(ArraySource):
    """Rows that end with an exception after some batches."""

    after = 0

    def batches(self) -> Iterator[tuple[Any, Any]]:
        for index, batch in enumerate(super().batches()):
            if index == self.after:
                raise KeyboardInterrupt
            yield batch


@pytest.mark.parametrize("after", [1, 8, 13])
def test_an_interrupted_pass_goes_on_and_ends_with_the_same_bits(
    rows: Rows,
    make_model: Make,
    whole: idm.models.StructuredSGPR,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    computed_rows: list[int],
    after: int,
) -> None:
    path = tmp_path / "pass.npz"
    expected = whole.statistics
    with monkeypatch.context() as patch:
        patch.setattr(Breaking, "after", after)
        patch.setattr("interdomain.streaming.sources.ArraySource", Breaking)
        with pytest.raises(KeyboardInterrupt):
            make_model(rows, checkpoint_path=path).elbo()
    blocks = after // 8  # eight batches of ten rows are summed before they can be saved
    assert path.exists() == (blocks > 0)
    if blocks:
        with pytest.raises(ValueError, match=f"a pass that ended after {80 * blocks} rows"):
            SufficientStatistics.load(path)
    computed_rows.clear()
    resumed = make_model(rows, checkpoint_path=path)
    assert same_bits(resumed.statistics, expected)
    # Rows that were done are not computed again, but for the four that identify the features.
    assert sum(computed_rows) == 4 + len(rows[0]) - 80 * blocks
    # The file is complete now: it can be loaded, and a third model computes nothing.
    assert same_bits(SufficientStatistics.load(path), expected)
    computed_rows.clear()
    assert same_bits(make_model(rows, checkpoint_path=path).statistics, expected)
    assert sum(computed_rows) == 4


def test_a_killed_pass_has_saved_in_the_meantime(
    rows: Rows, make_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run when a process is killed: what is there was written before."""
    monkeypatch.setattr(pass_files, "SECONDS_BETWEEN", 0.0)
    saved: list[int] = []
    original = pass_files.PassFile.save

    def remembered(self: Any, statistics: Any, position: Any, source: Any) -> None:
        saved.append(position.rows)
        original(self, statistics, position, source)

    monkeypatch.setattr(pass_files.PassFile, "save", remembered)
    _ = make_model(rows, checkpoint_path=tmp_path / "pass.npz").statistics
    assert saved == [80, 160, 211]


def test_a_file_of_another_pass_is_refused(rows: Rows, make_model: Make, tmp_path: Path) -> None:
    path = tmp_path / "pass.npz"
    _ = make_model(rows, checkpoint_path=path).statistics
    before = path.read_bytes()
    (X, Y), others = rows, rows[0].copy()
    others[100, 0] += 1e-9
    for data, change, message in (
        (rows, {"scale": 0.8}, "its features are others: kernel.weight_variances"),
        (rows, {"batch_size": 20}, "batch_size was 10, and is 20"),
        ((X[:200], Y[:200]), {}, "rows was 211, and is 200"),
        ((others, Y), {}, "the rows that it is of are not those of the data"),
    ):
        with pytest.raises(ValueError, match=message):
            make_model(data, checkpoint_path=path, **change).elbo()
    assert path.read_bytes() == before


def test_a_dataset_with_more_or_fewer_rows_than_the_file_is_refused(
    rows: Rows, make_model: Make, tmp_path: Path
) -> None:
    def dataset(num_rows: int) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(tuple(a[:num_rows] for a in rows)).batch(10)

    path = tmp_path / "pass.npz"
    _ = make_model(dataset(200), checkpoint_path=path).statistics
    with pytest.raises(ValueError, match="complete with 200 rows, the data have more"):
        _ = make_model(dataset(211), checkpoint_path=path).statistics
    with pytest.raises(ValueError, match="it has 200 rows, the data 100"):
        _ = make_model(dataset(100), checkpoint_path=path).statistics


def test_rows_that_are_not_finite_are_named_and_what_was_done_is_kept(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    X, Y = rows[0].copy(), rows[1].copy()
    X[[95, 130], 1], Y[210, 0] = np.nan, np.inf
    batches = tf.data.Dataset.from_tensor_slices
    for kind, data, mended in (
        ("arrays", (X, Y), rows),
        ("dataset", batches((X, Y)).batch(30), batches(rows).batch(30)),
    ):
        path = tmp_path / f"{kind}.npz"
        message = "3 rows have NaN .*: 95, 130, 210 .*first 80"
        with pytest.raises(InvalidRowsError, match=message) as error:
            make_model(data, checkpoint_path=path).elbo()
        assert list(error.value.rows) == [95, 130, 210]
        # Mended, the pass goes on; its first 80 rows are done.
        resumed = make_model(mended, checkpoint_path=path).statistics
        assert same_bits(resumed, whole.statistics)
    # Left out, they leave the statistics of the others.
    valid = np.delete(np.arange(211), [95, 130, 210])
    skipping = make_model((X, Y), on_invalid="skip")
    assert (skipping.num_data, skipping.statistics.num_skipped) == (208, 3)
    expected = make_model((X[valid], Y[valid]))
    np.testing.assert_allclose(skipping.elbo(), expected.elbo(), rtol=1e-12)


def test_rows_that_were_left_out_stay_out_of_gradients(rows: Rows, make_model: Make) -> None:
    X, Y = rows[0].copy(), rows[1].copy()
    X[3], Y[20:30] = np.nan, np.inf  # a whole batch among them
    valid = np.all(np.isfinite(np.concatenate([X, Y], axis=1)), axis=1)

    def gradient(data: Any) -> np.ndarray:
        model = make_model(data, frozen=False, on_invalid="skip")
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        scales = model.kernel.weight_variances.unconstrained_variable
        return tf.convert_to_tensor(tape.gradient(loss, scales)).numpy()

    expected = gradient((X[valid], Y[valid]))
    np.testing.assert_allclose(gradient((X, Y)), expected, rtol=1e-10)
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    np.testing.assert_allclose(gradient(dataset), expected, rtol=1e-10)


def test_no_finite_row_and_no_finite_feature_are_errors(rows: Rows, make_model: Make) -> None:
    X, Y = rows
    with pytest.raises(ValueError, match="no row is left, 211 were skipped"):
        make_model((np.full_like(X, np.nan), Y), on_invalid="skip").elbo()
    huge = X.copy()
    huge[42] = 1e200  # a finite number, whose square is not
    with pytest.raises(ValueError, match="features of 1 finite rows are NaN.* among rows 40 to 49"):
        make_model((huge, Y)).elbo()


def test_a_long_pass_shows_a_bar_and_a_short_one_does_not(
    rows: Rows, make_model: Make, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for delay, progress, shown in ((1e6, True, False), (0.0, True, True), (0.0, False, False)):
        monkeypatch.setattr("interdomain._progress._DELAY", delay)
        make_model(rows, progress=progress).elbo()
        errors = capsys.readouterr().err
        assert "pass: 100%" in errors if shown else "pass" not in errors


def test_gradient_tapes_of_the_caller_record_no_batch(rows: Rows, make_model: Make) -> None:
    """The pass is constant to a tape; so is what it was made of."""
    model = make_model(rows)
    X = tf.Variable(rows[0])
    with tf.GradientTape(persistent=True) as tape:
        bound = model.elbo()
    assert tape.gradient(bound, X) is None
    assert tape.gradient(bound, model.kernel.bias_variance.unconstrained_variable) is None
    variance = model.kernel.variance.unconstrained_variable
    assert tape.gradient(bound, variance) is not None
    assert gpflow.config.default_float() is np.float64
