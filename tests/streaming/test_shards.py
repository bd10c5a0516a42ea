"""Rows in parts: the sums of all of them, a file for each, and what a lost worker leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.streaming import InvalidRowsError, Shards, SufficientStatistics
from tests.workers import finish, start_workers

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]


def test_parts_are_summed(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    """Arrays, functions and datasets; each part is opened when its turn comes, one at a time."""
    X, Y = rows
    opened: list[str] = []

    def function(name: str, part: slice) -> Callable[[], Rows]:
        def read() -> Rows:
            opened.append(name)
            return X[part], Y[part]

        return read

    dataset = tf.data.Dataset.from_tensor_slices((X[100:130], Y[100:130])).batch(9)
    parts: dict[str, Any] = {
        "monday": function("monday", slice(0, 60)),
        "tuesday": (X[60:100], Y[60:100]),
        "wednesday": dataset,
        "thursday": function("thursday", slice(130, None)),
    }
    folder = tmp_path / "parts"
    model = make_model(Shards(parts), checkpoint_path=folder)
    assert opened == ["monday"]  # for its numbers of columns
    np.testing.assert_allclose(
        model.statistics.gram.value, whole.statistics.gram.value, rtol=1e-13, atol=1e-13
    )
    assert opened == ["monday", "monday", "thursday"]
    assert model.num_data == len(X)
    np.testing.assert_allclose(model.elbo(), whole.elbo(), rtol=1e-12)
    # Each part has a file of its own, which can be loaded and added.
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(f"{name}.npz" for name in parts)
    loaded = [SufficientStatistics.load(folder / f"{name}.npz") for name in parts]
    total = loaded[0] + loaded[1] + loaded[2] + loaded[3]
    np.testing.assert_array_equal(total.gram.value, model.statistics.gram.value)


def test_done_parts_are_not_computed_again(
    rows: Rows,
    make_model: Make,
    whole: idm.models.StructuredSGPR,
    tmp_path: Path,
    computed_rows: list[int],
) -> None:
    shards = Shards.split(rows, 4)

    def broken() -> Rows:
        raise OSError("no such file")

    parts = {name: shards.open(name) for name in shards.names}
    lost = parts | {shards.names[2]: broken}
    with pytest.raises(
        RuntimeError, match=r"data\['rows-105-157'\]: its function failed \(OSError: no such file"
    ):
        make_model(Shards(lost), checkpoint_path=tmp_path).elbo()
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(shards.names[:2])
    computed_rows.clear()
    model = make_model(shards, checkpoint_path=tmp_path)
    np.testing.assert_allclose(model.elbo(), whole.elbo(), rtol=1e-12)
    left = [len(shards.open(name)[0]) for name in shards.names[2:]]
    assert sum(computed_rows) == sum(left) + 4 * 4  # and four probes a part, done or not


def test_features_that_are_trained(rows: Rows, make_model: Make) -> None:
    """Evaluations and gradients go through the parts; rows that are added can be in parts too."""
    whole = make_model(rows, frozen=False)
    model = make_model(Shards.split((rows[0][:150], rows[1][:150]), 2), frozen=False)
    model.extend(Shards.split((rows[0][150:], rows[1][150:]), 2))
    found, expected = [], []
    for one, values in ((model, found), (whole, expected)):
        with tf.GradientTape() as tape:
            loss = one.training_loss()
        values += [loss, *tape.gradient(loss, one.trainable_variables)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert len(model.subset_model(20)._provider.subset(1000, 0)[0]) == 20


def test_a_part_that_cannot_be_read_is_named(rows: Rows, make_model: Make) -> None:
    X, Y = rows
    specs = tuple(tf.TensorSpec([None, n], tf.float64) for n in (2, 1))
    sizes = iter([40, 40, 30])

    def fails() -> Any:
        raise FileNotFoundError("it was there yesterday")

    def raises_midway() -> Any:
        yield X[:50], Y[:50]
        raise OSError("the disk is gone")

    def shrinks() -> Any:
        size = next(sizes)
        return X[:size], Y[:size]

    midway = tf.data.Dataset.from_generator(raises_midway, output_signature=specs)
    empty = tf.data.Dataset.from_tensor_slices((X[:0], Y[:0])).batch(10)
    for part, error, message in (
        ((X[:0], Y[:0]), ValueError, "X and Y have no rows"),
        (empty, ValueError, "no row is left"),
        (fails, RuntimeError, "its function failed .FileNotFoundError: it was there yesterday"),
        (midway, RuntimeError, "reading it failed after 50 rows .*the disk is gone"),
        ((X, Y[:5]), ValueError, "X has 211 rows and Y has 5"),
        ("rows", ValueError, "found a str; pass a pair of arrays"),
    ):
        with pytest.raises(error, match=rf"^data\['b'\]: {message}"):
            make_model(Shards({"a": rows, "b": part})).elbo()
    with pytest.raises(RuntimeError, match=r"data\['b'\]: reading it failed"):
        make_model(Shards({"a": rows, "b": midway})).subset_model(10)
    model = make_model(Shards({"a": rows, "b": shrinks}), frozen=False)
    assert float(model.elbo()) == float(model.elbo())  # not read again: nothing has changed
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match=r"data\['b'\]: the first pass read 40 rows, and now 30"):
        model.elbo()


def test_split() -> None:
    X, Y = np.arange(10.0)[:, None], np.zeros((10, 1))
    shards = Shards.split((X, Y), 3)
    assert shards.names == ("rows-0-2", "rows-3-5", "rows-6-9")
    np.testing.assert_array_equal(
        np.concatenate([shards.open(name)[0] for name in shards.names]), X
    )
    # Every part is one worker's, also where there are more workers than parts.
    for number in (1, 2, 3, 5):
        dealt = [shards.of_worker(index, number) for index in range(number)]
        assert sorted(name for names in dealt for name in names) == sorted(shards.names)


def test_errors(rows: Rows, make_model: Make) -> None:
    X, Y = rows
    for parts, message in (
        ({}, "pass a mapping"),
        ([rows], "pass a mapping"),
        ({"a/b": rows}, "no name for a part"),
        ({3: rows}, "no name for a part"),
    ):
        with pytest.raises(ValueError, match=message):
            Shards(parts)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="number: found 0 for 211 rows"):
        Shards.split(rows, 0)
    with pytest.raises(ValueError, match=r"data\['b'\]: X has 1 columns, the model's has 2"):
        make_model(Shards({"a": rows, "b": (X[:, :1], Y)})).elbo()
    spoilt = X.copy()
    spoilt[[3, 7], 0] = np.nan
    with pytest.raises(InvalidRowsError, match=r"data\['b'\]: 2 rows .* 3, 7") as caught:
        make_model(Shards({"a": rows, "b": (spoilt, Y)})).elbo()
    assert caught.value.part == "b" and list(caught.value.rows) == [3, 7]
    with (
        tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        pytest.raises(ValueError, match="outside of strategy.scope()"),
    ):
        make_model(rows)


@pytest.mark.slow
def test_two_workers_one_of_which_is_killed(rows: Rows, tmp_path: Path) -> None:
    """What it had done is used when both are started again; sums are those of one process."""
    script = Path(__file__).with_name("shards_worker.py")
    chief, other = start_workers(script, str(tmp_path), "killed")
    found = finish(chief)
    other.communicate(timeout=60)
    assert other.returncode == -9
    assert found["error"] == "WorkerLostError" and str(tmp_path) in found["message"]
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["a", "b", "c", "e"]
    one, two = (finish(worker) for worker in start_workers(script, str(tmp_path), "whole"))
    # Four probes a part, and the rows of d, which worker 1 had not done.
    assert one["computed"] == 3 * 4 and two["computed"] == 2 * 4 + two["rows of d"]
    # One process alone uses what two have done.
    assert one["rows of one process"] == one["rows"] and one["computed by one process"] == 5 * 4
    assert one["difference"] < 1e-12
    assert one["checksum"] == two["checksum"]  # of the sums, to the last bit
    assert one["split difference"] < 1e-12
    assert one["subset"] == two["subset"] and one["fitted"] == two["fitted"]
    assert one["bound"] == pytest.approx(one["bound of one process"], rel=1e-10)
    assert one["chosen"] == two["chosen"] == one["chosen by one process"]
    assert len(one["chosen"]) == 30
    assert one["features"] == two["features"] and len(one["features"]) == 24
    assert one["extended"] == two["extended"] == 2 * one["rows"] + 1
    assert one["invalid"].startswith("RuntimeError: worker 1 failed: InvalidRowsError: data['b']")
    assert two["invalid"].startswith("InvalidRowsError: data['b']: 1 rows")
    for message in (one["dataset"], two["dataset"]):
        assert "found one tf.data.Dataset for 2 workers" in message
    assert "their gradients are not summed over workers" in one["trainable"]
    assert "are others than when this function was compiled" in one["changed"]
