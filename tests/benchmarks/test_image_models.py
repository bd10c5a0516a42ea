"""The benchmarks of convolutional kernels: their models, configurations and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from benchmarks import colour_conv, mnist_conv, rectangles
from benchmarks._lib import image_models
from benchmarks._lib.data import Images
from benchmarks._lib.image_models import LabelledRows, build_model, labelled_rows
from benchmarks._lib.prediction import class_errors
from benchmarks._lib.runner import Benchmark


def configurations(benchmark: Benchmark, *options: str) -> list[dict[str, Any]]:
    return list(benchmark.configurations(benchmark._parser().parse_args(options)))


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def images(shape: tuple[int, ...], num_classes: int) -> Images:
    generator = np.random.default_rng(0)
    pixels = generator.integers(256, size=(30, *shape)).astype(np.uint8)
    labels = np.arange(30) % num_classes
    return Images("noise", pixels, labels, pixels[:20], labels[:20])


@pytest.fixture
def colours() -> LabelledRows:
    return labelled_rows(images((6, 6, 3), 10), train=25, test=15, seed=0)


@pytest.fixture
def configuration() -> dict[str, Any]:
    return {
        **{"num_inducing": 4, "patch": 3, "stride": 2, "patches_from": "images", "seed": 0},
        **{"variance": 10.0, "lengthscale": 2.0, "rbf_variance": 1.0, "rbf_lengthscale": 5.0},
        **{"steps": 3, "batch_size": 5, "learning_rate": 0.01, "decay_every": 2},
        "natural_gradient": None,
    }


def test_labelled_rows(colours: LabelledRows) -> None:
    assert colours.X_train.shape == (25, 108) and colours.X_test.shape == (15, 108)
    assert 0.0 <= colours.X_train.min() < 0.1 and 0.9 < colours.X_train.max() <= 1.0
    assert colours.Y_train.dtype == np.int64 and colours.num_latent == 10
    two = labelled_rows(images((6, 6), 2), train=25, test=15, seed=0)
    assert two.Y_train.dtype == np.float64 and two.num_latent == 1 and two.shape == (6, 6)


@pytest.mark.full
@pytest.mark.parametrize("name", ["rbf", "weighted", "colour_patch", "additive", "multi_channel"])
def test_models_of_colour_images(
    name: str, colours: LabelledRows, configuration: dict[str, Any]
) -> None:
    model = build_model({**configuration, "model": name}, colours)
    errors = class_errors(model, colours.X_test, colours.Y_test)
    assert 0.0 <= errors["accuracy"] <= 1.0 and np.isfinite(errors["nll"])
    num_patches = {"weighted": 12, "colour_patch": 4, "additive": 4}
    if name in num_patches:
        assert model.kernel.num_patches == num_patches[name]
    if name == "multi_channel":
        assert isinstance(model, idm.models.AdditiveSVGP) and model.num_blocks == 3
        assert len(model.inducing_variable.blocks) == 1  # shared


def test_softmax_in_place_of_the_robust_maximum(
    colours: LabelledRows, configuration: dict[str, Any]
) -> None:
    for option, kind in (("softmax", "Softmax"), ("robust_max", "MultiClass")):
        (run,) = configurations(
            colour_conv.ColourConv(), "--likelihood", option, "--models", "multi_channel"
        )
        assert run.get("likelihood") == (None if option == "robust_max" else option)
        model = build_model({**configuration, **run, "num_inducing": 4, "patch": 3}, colours)
        assert type(model.likelihood).__name__ == kind
        assert ("softmax" in image_models.method_of(run)) == (option == "softmax")


@pytest.mark.full
@pytest.mark.parametrize("name", ["invariant", "weighted_rbf", "weighted_rbf_mean_field"])
def test_models_of_grey_images(name: str, configuration: dict[str, Any]) -> None:
    rows = labelled_rows(images((6, 6), 10), train=25, test=15, seed=0)
    model = build_model({**configuration, "model": name, "stride": 1}, rows)
    assert isinstance(model, idm.models.AdditiveSVGP) == (name == "weighted_rbf_mean_field")
    assert np.isfinite(class_errors(model, rows.X_test, rows.Y_test)["nll"])
    weights = [path for path in image_models.kernel_parameters(model) if "weights" in path]
    assert len(weights) == (name != "invariant")


@pytest.mark.full
def test_training_is_judged_on_the_test_images(
    configuration: dict[str, Any], tmp_path: Path
) -> None:
    rows = labelled_rows(images((6, 6), 2), train=25, test=15, seed=0)
    arguments = rectangles.Rectangles()._parser().parse_args(["--results", str(tmp_path)])
    for model, batch_size in (("invariant", 5), ("rbf_full", None)):
        run = {**configuration, "model": model, "patches_from": "noise", "batch_size": batch_size}
        result = image_models.train_and_judge("test", run, rows, arguments)
        assert [point["step"] for point in result["curve"]] == [1, 2, 3]
        assert result["curve"][-1]["nll"] == pytest.approx(result["nll"], rel=1e-5)
        assert list((tmp_path / "checkpoints").iterdir()) == []


def test_errors_of_two_classes() -> None:
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Bernoulli(), np.zeros((1, 1))
    )
    errors = class_errors(model, np.zeros((4, 1)), np.array([[0.0], [0.0], [0.0], [1.0]]))
    assert errors == {"accuracy": 0.75, "nll": pytest.approx(np.log(2.0))}


def test_learning_rate_decays_by_the_cube_root_of_ten(configuration: dict[str, Any]) -> None:
    rate = image_models.adam(configuration).get_config()["learning_rate"]["config"]
    assert rate["decay_rate"] ** 3 == pytest.approx(0.1) and rate["staircase"]
    assert rate["decay_steps"] == 2


def test_paper_sizes() -> None:
    (first, *_) = configurations(mnist_conv.MnistConv(), "--paper", "--tasks", "ten")
    assert (first["num_inducing"], first["images"], first["stride"]) == (750, 60_000, 1)
    runs = configurations(colour_conv.ColourConv(), "--paper")
    assert [run["model"] for run in runs] == list(colour_conv.PAPER)
    assert {(run["num_inducing"], run["batch_size"]) for run in runs} == {(1_000, 40)}


def test_defaults() -> None:
    runs = configurations(rectangles.Rectangles(), "--seeds", "0-1")
    assert [(run["seed"], run["model"]) for run in runs] == [
        (seed, model) for seed in (0, 1) for model in ("invariant", "weighted", "rbf_full")
    ]
    tasks = [run["task"] for run in configurations(mnist_conv.MnistConv())]
    assert tasks == ["zero_one"] + 4 * ["ten"]


def test_tables_have_the_papers_figures() -> None:
    result = {"accuracy": 0.986, "nll": 0.05, "seconds_per_step": 0.1, "train_seconds": 10.0}
    runs = configurations(rectangles.Rectangles())
    records = [{"configuration": run, "result": result} for run in runs]
    first, second, _ = rows_of(rectangles.Rectangles().table(records))
    assert first[0] == "rbf_full" and first[7:11] == ["5.0", "1.40", "0.258", "0.050"]
    assert second[0] == "invariant" and second[7:11] == ["1.4", "1.40", "0.055", "0.050"]
    runs = configurations(mnist_conv.MnistConv(), "--short")
    tables = mnist_conv.tables([{"configuration": run, "result": result} for run in runs])
    cells = [row[7:10:2] for row in rows_of(tables) if row[0] in image_models.MODELS]
    assert cells == [["0.3", ""], ["2.08", "0.077"], ["1.17", "0.039"]]
