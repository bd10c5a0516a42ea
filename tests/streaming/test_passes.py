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
    for size in (1, 7, 500):
        dataset = tf.data.Dataset.from_tensor_slices(rows).batch(size)
        assert same_bits(make_model(dataset).statistics, expected)


@pytest.mark.parametrize("batch_size", [1, 97, 211, 10_000, None])
def test_any_batch_size(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, batch_size: int | None
) -> None:
    expected = whole.statistics.gram.value
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


@pytest.mark.parametrize("after", [1, 8, 13, 20])
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0.8}, "its features are others: kernel.weight_variances"),
        ({"batch_size": 20}, "batch_size was 10, and is 20"),
        ({"rows": "fewer"}, "rows was 211, and is 200"),
        ({"rows": "others"}, "the rows that it is of are not those of the data"),
    ],
)
def test_a_file_of_another_pass_is_refused(
    rows: Rows, make_model: Make, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "pass.npz"
    _ = make_model(rows, checkpoint_path=path).statistics
    before = path.read_bytes()
    X, Y = rows
    if change.get("rows") == "fewer":
        X, Y = X[:200], Y[:200]
    if change.pop("rows", None) == "others":
        X = X.copy()
        X[100, 0] += 1e-9
    with pytest.raises(ValueError, match=message):
        make_model((X, Y), checkpoint_path=path, **change).elbo()
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


@pytest.mark.parametrize("kind", ["arrays", "dataset"])
def test_rows_that_are_not_finite_are_named_and_what_was_done_is_kept(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path, kind: str
) -> None:
    X, Y = rows[0].copy(), rows[1].copy()
    X[[95, 130], 1], Y[210, 0] = np.nan, np.inf
    data: Any = (X, Y)
    mended: Any = rows
    if kind == "dataset":
        data, mended = (
            tf.data.Dataset.from_tensor_slices(pair).batch(30) for pair in (data, mended)
        )
    path = tmp_path / "pass.npz"
    with pytest.raises(InvalidRowsError, match="3 rows have NaN .*: 95, 130, 210 .*first 80") as e:
        make_model(data, checkpoint_path=path).elbo()
    assert list(e.value.rows) == [95, 130, 210]
    # Mended, the pass goes on; its first 80 rows are done.
    resumed = make_model(mended, checkpoint_path=path).statistics
    assert same_bits(resumed, whole.statistics)
    # Left out, they leave the statistics of the others.
    valid = np.delete(np.arange(211), [95, 130, 210])
    skipping = make_model(data, on_invalid="skip")
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
    make_model(rows, progress=True).elbo()
    assert "pass" not in capsys.readouterr().err
    monkeypatch.setattr("interdomain._progress._DELAY", 0.0)
    make_model(rows, progress=True).elbo()
    assert "pass: 100%" in capsys.readouterr().err
    make_model(rows, progress=False).elbo()
    assert capsys.readouterr().err == ""


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
