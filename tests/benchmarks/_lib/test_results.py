"""Records on disk, and runs that resume from them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

import interdomain as idm
from benchmarks._lib import data
from benchmarks._lib.data import DataError
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.regression import test_errors as errors_on_test_rows
from benchmarks._lib.results import Record, ResultFile, configuration_key, environment_key
from benchmarks._lib.runner import Benchmark, Entries, indices
from benchmarks._lib.splits import Split, normalise, take_split


class Squares(Benchmark, numbers=indices, failing=int):
    """Squares of a few numbers."""

    name = "squares"

    def __init__(self) -> None:
        self.ran: list[int] = []

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Entries]:
        return [{"number": number} for number in arguments.numbers or [1, 2, 3]]

    def run(self, configuration: Entries, arguments: argparse.Namespace) -> dict[str, Any]:
        number = configuration["number"]
        if number == arguments.failing:
            raise DataError(f"no data for {number}")
        self.ran.append(number)
        return {"square": number**2}

    def table(self, records: Sequence[Record]) -> str:
        return ", ".join(str(record["result"]["square"]) for record in records)


def test_records(tmp_path: Path) -> None:
    """The newest counts where the first was. A last line that was not finished is mended; one in
    the middle is an error."""
    assert configuration_key({"a": 1, "b": "x"}) == configuration_key({"b": "x", "a": 1})
    file = ResultFile(tmp_path / "new folder" / "results.jsonl")

    def numbers() -> list[float]:
        return [one["result"]["number"] for one in file.records()]

    assert numbers() == []
    for torn in (b"", b'{"configuration": {"spl', b"\xff\xfe"):
        for number, split in [(1.0, 0), (2.0, 1), (3.0, 0)]:
            file.append({"configuration": {"split": split}, "result": {"number": number}})
        with file.path.open("ab") as stream:
            stream.write(torn)
        assert numbers() == [3.0, 2.0]
    file.path.write_text('{"broken\n{"configuration": {}}\n')
    with pytest.raises(ValueError, match=r"line 1 of results\.jsonl is not a record"):
        file.records()


def test_an_environment_is_stored_once(tmp_path: Path) -> None:
    """Above the records that were measured in it, each of which has it when it is read."""
    file = ResultFile(tmp_path / "results.jsonl")
    here, there = {"python": "3.12", "commit": "abc"}, {"python": "3.12", "commit": "def"}
    for number, environment in enumerate([here, there, here]):
        file.append({"configuration": {"number": number}, "environment": environment})
        with file.path.open("ab") as stream:
            stream.write(b'{"environment": "to')  # an interruption
    assert [one["environment"] for one in file.records()] == [here, there, here]
    lines = file.path.read_text().splitlines()[:-1]
    stored = [json.loads(line) for line in lines]
    keys = [environment_key(one) for one in (here, there)]
    assert [line["environment"] for line in stored] == [keys[0], keys[0], keys[1], keys[1], keys[0]]
    assert stored[0] == {"environment": keys[0], **here} and stored[2]["commit"] == "def"
    file.path.write_text("\n".join(lines[1:]))
    with pytest.raises(ValueError, match=r"line 1 of results\.jsonl names the environment"):
        file.records()


def test_resume_skips_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed runs are reported and tried again; short results stay out of the stored ones."""
    benchmark, options = Squares(), ["--results", str(tmp_path)]
    assert benchmark.main([*options, "--numbers", "1-2", "--failing", "2"]) == 1
    assert "no data for 2" in capsys.readouterr().err
    assert benchmark.main(options) == 0
    assert benchmark.ran == [1, 2, 3]
    assert benchmark.main([*options, "--numbers", "2", "--rerun"]) == 0
    capsys.readouterr()
    assert benchmark.main([*options, "--table"]) == 0
    assert capsys.readouterr().out == "1, 4, 9\n"
    assert benchmark.ran == [1, 2, 3, 2]
    monkeypatch.setattr("benchmarks._lib.runner.RESULTS_FOLDER", tmp_path / "stored")
    benchmark.main(["--short"])
    assert (tmp_path / "stored" / "short" / "squares.jsonl").exists()
    assert not (tmp_path / "stored" / "squares.jsonl").exists()


# The loaders of data sets, images and elevations; splits, normalisation, and categories.


def write_table(folder: Path, **arrays: Any) -> None:
    X, Y = np.random.default_rng(0).normal(size=(2, 20, 3))
    np.savez(folder / "uci_yacht.npz", **{"X": X, "Y": Y[:, :1], **arrays})


def test_splits_of_a_table(tmp_path: Path) -> None:
    """Stored as indices, or drawn by their number."""
    train, test = np.arange(4, 20, dtype=np.int32), np.arange(4, dtype=np.int32)
    write_table(tmp_path, train_idx=train[None], test_idx=test[None])
    table = data.load_table("yacht", tmp_path)
    split = take_split(table, 0)
    np.testing.assert_array_equal(split.X_test, table.X[:4])
    np.testing.assert_array_equal(split.Y_train, table.Y[4:])
    with pytest.raises(ValueError, match="split 1 of 'yacht' does not exist"):
        take_split(table, 1)
    write_table(tmp_path)
    table = data.load_table("yacht", tmp_path)
    first, again, other = (take_split(table, number).X_test for number in (3, 3, 4))
    assert first.shape == (2, 3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# The bound with the q that is optimal, for each kind of model it is for.

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(30, 2))
DATA = (X, np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * rng.normal(size=(30, 2)))


def orthogonal(**options: Any) -> gpflow.models.SVGP:
    kernel = idm.kernels.SphericalMatern32()
    harmonics = idm.inducing_variables.SphericalHarmonics(3, [0, 1])
    points = InducingPoints(X[:4].copy())
    return idm.models.OrthogonalSVGP(
        kernel, inducing_variable=harmonics, orthogonal_inducing_variable=points, **options
    )


def blocks(**options: Any) -> gpflow.models.SVGP:
    kernel = idm.kernels.HarmonicKernel(gpflow.kernels.Matern32(), idm.transforms.Rotation(3))
    harmonic = idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, X[:4])
    return idm.models.AdditiveSVGP(kernel, inducing_variable=harmonic, **options)


@pytest.mark.parametrize("build", [orthogonal, blocks])
def test_no_q_is_better(build: Callable[[], Any]) -> None:
    """The bound is the model's own there, its gradient for q is zero, and another q is worse."""
    model = build(likelihood=gpflow.likelihoods.Gaussian(0.3), num_latent_gps=2)
    optimal = OptimalQ(model, DATA)
    bound = optimal.maximum_log_likelihood_objective()
    assert model.elbo(DATA) < bound
    optimal.assign_q()
    np.testing.assert_allclose(model.elbo(DATA), bound, rtol=1e-9)
    pairs = getattr(model, "variational_parameters", [(model.q_mu, model.q_sqrt)])
    q = [parameter for pair in pairs for parameter in pair]
    gpflow.set_trainable(q, True)
    with tf.GradientTape() as tape:
        elbo = model.elbo(DATA)
    for gradient in tape.gradient(elbo, [part.unconstrained_variable for part in q]):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-7)


# Judging regression models.


def test_errors_of_a_model_on_normalised_rows() -> None:
    """Normalised as the training rows; columns that are constant stay so."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-2.0, 2.0, size=(60, 3))
    X[:, 2] = 0.1  # its mean is not exactly 0.1, so its deviation is not exactly 0
    Y = np.sin(X[:, :1]) + X[:, 1:2] + 0.1 * generator.normal(size=(60, 1))
    split = normalise(Split(X[:50], Y[:50], X[50:], Y[50:]))
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X_train.std(axis=0), [1.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(split.Y_test * split.Y_scale + split.Y_mean, Y[50:])
    model = gpflow.models.GPR((split.X_train, split.Y_train), gpflow.kernels.Matern32())
    errors = errors_on_test_rows(model, split, batch_size=3)
    mean, variance = (np.asarray(value) for value in model.predict_y(split.X_test))
    squared = np.square(mean - split.Y_test)
    assert errors["mse"] == pytest.approx(float(squared.mean()))
    density = 0.5 * (np.log(2 * np.pi * variance) + squared / variance)
    assert errors["nlpd"] == pytest.approx(float(density.mean()))
