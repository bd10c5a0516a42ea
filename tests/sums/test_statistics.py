"""Sufficient statistics: the sums, what can be done with them, and the passes that make them."""

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.regression import SufficientStatistics
from tests.parts import frozen

Rows = tuple[np.ndarray, np.ndarray]
Model = idm.models.StructuredSGPR
Make = Callable[..., Model]


def test_statistics_are_the_sums_that_they_say(rows: Rows, whole: Model) -> None:
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


def test_parts_add_up_and_can_be_taken_away(rows: Rows, make_model: Make, whole: Model) -> None:
    X, Y = rows
    total = whole.statistics
    first, second = (make_model((X[part], Y[part])) for part in (slice(50), slice(50, None)))
    together = first.statistics + second.statistics
    assert together.num_rows == len(X)
    np.testing.assert_allclose(together.sums["gram"], total.sums["gram"], rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(together.sums["products"], total.sums["products"], atol=1e-12)
    rest = total - first.statistics
    assert rest.num_rows == len(X) - 50
    np.testing.assert_allclose(rest.sums["gram"], second.statistics.sums["gram"], atol=1e-12)
    elbo = make_model(together).elbo()
    np.testing.assert_allclose(elbo, whole.elbo(), rtol=1e-13)


def same_bits(one: SufficientStatistics, other: SufficientStatistics) -> bool:
    return one.num_rows == other.num_rows and all(
        np.array_equal(one.sums[name], other.sums[name]) for name in one.sums
    )


def test_a_saved_copy_is_the_same_to_the_last_bit(
    make_model: Make, whole: Model, tmp_path: Path
) -> None:
    statistics = whole.statistics
    statistics.save(tmp_path / "rows.statistics")
    loaded = SufficientStatistics.load(tmp_path / "rows.statistics")
    assert same_bits(statistics, loaded) and loaded.description == statistics.description
    assert make_model(loaded).elbo() == make_model(statistics).elbo()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.statistics"]


def test_other_statistics_are_not_added(rows: Rows, make_model: Make, whole: Model) -> None:
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
    for combined in (lambda: statistics + 1, lambda: statistics - 1):
        with pytest.raises(TypeError):
            combined()
    with pytest.raises(ValueError, match="211 rows to take away from 5"):
        make_model((rows[0][:5], rows[1][:5])).statistics - statistics


def test_a_model_refuses_statistics_of_features_with_the_same_parameters(rows: Rows) -> None:
    """Another kernel, other degrees: nothing that a list of parameters would tell."""

    def make(data: Any, degrees: list[int], **arguments: Any) -> Model:
        kernel = idm.kernels.SphericalMatern32(**arguments)
        frozen(kernel.weight_variances, kernel.bias_variance)
        harmonics = idm.inducing_variables.SphericalHarmonics(2, degrees)
        return Model(data, kernel, harmonics, progress=False)

    statistics = make(rows, [0, 1, 2], active_dims=[0]).statistics
    assert np.isfinite(make(statistics, [0, 1, 2], active_dims=[0]).elbo())
    for degrees, column, message in (
        ([0, 1, 3], 0, r"inducing_variable.* is .* in one and .* in the other"),
        ([0, 1, 2], 1, r"kernel.active_dims is \[0\] in one and \[1\] in the other"),
    ):  # degree 3 has as many harmonics as 2
        with pytest.raises(ValueError, match=message):
            make(statistics, degrees, active_dims=[column]).elbo()


# Passes over the data: of any kind, in any batches, and over rows that are not finite.


def test_arrays_maps_of_files_and_datasets_give_the_same(
    rows: Rows, make_model: Make, whole: Model, tmp_path: Path
) -> None:
    X, Y = rows
    expected = whole.statistics
    assert same_bits(make_model(rows).statistics, expected)
    for name, array in {"X": X, "Y": Y}.items():
        np.save(tmp_path / f"{name}.npy", array)
    maps = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "Y"))
    assert same_bits(make_model(maps).statistics, expected)
    # Batches of a dataset or generator are cut again, to the same size.
    for size in (7, 500):
        dataset = tf.data.Dataset.from_tensor_slices(rows).batch(size)
        starts = range(0, len(X), size)
        generator = lambda: ((X[k : k + size], Y[k : k + size]) for k in starts)  # noqa: B023, E731
        assert same_bits(make_model(dataset if size == 7 else generator).statistics, expected)
    for batch_size in (97, None):  # other batches, other rounding
        statistics = make_model(rows, batch_size=batch_size).statistics
        assert statistics.num_rows == len(X)
        gram = expected.sums["gram"]
        np.testing.assert_allclose(statistics.sums["gram"], gram, rtol=1e-13, atol=1e-12)


def test_a_generator_that_brings_something_else_is_refused(rows: Rows, make_model: Make) -> None:
    X, Y = rows
    sizes = iter([211, 211, 100])
    for data, message in (
        (lambda: iter([]), "there is no batch"),
        (lambda: iter([(X, Y[:5])]), "X has 211 rows and Y has 5"),
        (lambda: iter([(X, Y), (X[:, :1], Y)]), "a batch has 1 columns of X"),
    ):
        with pytest.raises(ValueError, match=f"data: .*{message}"):
            make_model(data).elbo()
    model = make_model(lambda n=sizes: (tuple(a[:k] for a in rows) for k in [next(n)]))
    model.elbo()
    model.kernel.bias_variance.assign(0.5)
    with pytest.raises(ValueError, match="an earlier pass read 211 rows, and this one 100; pass"):
        model.elbo()


def test_gradients_need_rows_in_memory(rows: Rows, make_model: Make) -> None:
    """Without, the bound can be evaluated, and what asks for a gradient says what to do."""
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(50)
    model, expected = make_model(dataset, frozen=False), make_model(rows, frozen=False)
    np.testing.assert_allclose(model.elbo(), expected.elbo(), rtol=1e-10)
    message = (
        "data: the features depend on kernel.bias_variance, kernel.weight_variances, trainable, and"
        " their gradients need all rows in memory.*interdomain.fit.*set_trainable.*SVGP, in mini"
    )
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    with pytest.raises(ValueError, match=message):
        tape.gradient(loss, model.trainable_variables)
    everything: Any = {"progress": False, "options": {"subset_size": None}}
    assert idm.fit(expected, steps=3, **everything).frozen == ()
    assert expected.kernel.weight_variances.trainable
    with pytest.raises(ValueError, match=message):
        idm.fit(model, steps=3, **everything)


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
    assert set(X.read[1:]) == {10}  # after those that are looked at


def test_rows_that_are_not_finite_are_named(rows: Rows, make_model: Make, whole: Model) -> None:
    X, Y = rows[0].copy(), rows[1].copy()
    X[[95, 130], 1], Y[210, 0] = np.nan, np.inf
    model = make_model((X, Y))
    for one in (model, make_model(tf.data.Dataset.from_tensor_slices((X, Y)).batch(30))):
        with pytest.raises(ValueError, match=r"data: 1 rows have NaN .*: 95 \(counted from zero"):
            one.elbo()
    # Mended in place, they are taken.
    X[[95, 130], 1], Y[210, 0] = rows[0][[95, 130], 1], rows[1][210, 0]
    assert same_bits(model.statistics, whole.statistics)


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


def test_one_process_has_the_sums_itself(make_model: Make, whole: Model) -> None:
    """tests/training/test_resume.py adds those of two workers."""
    own = whole.statistics
    for strategy in (tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy()):
        found = own.all_reduce(strategy)
        assert same_bits(found, own) and make_model(found).elbo() == make_model(own).elbo()


def test_files_that_cannot_be_right_are_refused(whole: Model, tmp_path: Path) -> None:
    """None, a part of one, and files with numbers that cannot be those of rows."""
    path = tmp_path / "pass.npz"
    whole.statistics.save(path)
    good, content = dict(np.load(path)), path.read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(ValueError, match=f"path: {path} holds no sufficient statistics"):
        SufficientStatistics.load(path)
    with pytest.raises(FileNotFoundError):
        SufficientStatistics.load(tmp_path / "missing.npz")
    np.savez(path, **{name: array for name, array in good.items() if name != "products"})
    with pytest.raises(ValueError, match=f"path: {path} .*KeyError: 'products'"):
        SufficientStatistics.load(path)
    header, size = json.loads(str(good["header"])), len(good["gram"])
    shape = rf"gram must have shape \({size}, {size}\), found \(1, {size}\)"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"num_rows": -5}, "num_rows must be an integer of 0 or more, found -5"),
        ({"num_rows": 1.5}, r"num_rows must be an integer of 0 or more, found 1\.5"),
        ({"num_rows": 210}, "num_rows must be 211, as the sums say, found 210"),
        ({"gram": good["gram"] * np.nan}, "gram must be finite"),
        ({"gram": good["gram"][:1]}, shape),
        ({"products": good["products"][:, :1]}, "products must have shape"),
        ({"targets": good["targets"][:1]}, "targets must have shape"),
        ({"diagonal": good["diagonal"][0]}, r"diagonal must have shape \(1,\), found \(\)"),
        ({"parameter_0": np.array(np.inf)}, "must be finite"),
    ]
    for changes, message in wrong:
        named = {key: changes[key] for key in changes.keys() & header.keys()}
        arrays = good | {key: changes[key] for key in changes.keys() & good.keys()}
        assert named or arrays.keys() >= changes.keys()
        np.savez(path, **(arrays | {"header": np.array(json.dumps(header | named))}))
        with pytest.raises(ValueError, match=f"path: {path} .*{message}"):
            SufficientStatistics.load(path)


def test_saving_replaces_files_alone(whole: Model, tmp_path: Path, monkeypatch: Any) -> None:
    """Nothing but files, by new files that nobody can have put there; an error leaves no traces."""
    statistics, path = whole.statistics, tmp_path / "pass.npz"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for name, kind in (("pipe", "a pipe"), ("folder", "a folder"), ("nowhere", "a link to nothin")):
        with pytest.raises(ValueError, match=f"path must be that of a file, found {kind}"):
            statistics.save(tmp_path / name)
    with pytest.raises(ValueError, match="path must be that of a file, found a device"):
        statistics.save(os.devnull)
    mask = os.umask(0o027)
    try:
        statistics.save(path)
        assert path.stat().st_mode & 0o777 == 0o640
        bait = tmp_path / f"{path}.{os.getpid()}.tmp"  # the name of earlier versions
        (victim := tmp_path / "victim").write_text("untouched")
        bait.symlink_to(victim)
        statistics.save(path)
        assert victim.read_text() == "untouched" and bait.is_symlink()
    finally:
        os.umask(mask)
    before, content = sorted(tmp_path.iterdir()), path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda file, **arrays: file.write(b"half") / 0)
    with pytest.raises(ZeroDivisionError):
        statistics.save(path)
    assert sorted(tmp_path.iterdir()) == before and path.read_bytes() == content
    monkeypatch.undo()
    monkeypatch.setattr(secrets, "token_hex", lambda number: "known")
    (tmp_path / ".pass.npz.known.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        statistics.save(path)
    assert victim.read_text() == "untouched"
