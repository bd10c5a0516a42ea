"""HVGP's Figures 2 and 4: transforms that match the data against transforms that do not.

flip       every MNIST image is flipped up-down and left-right, each with probability one half;
translate  every image is shifted cyclically by random numbers of pixels, 0 to 27, along both axes
           (the paper shifts "leftwards and downwards"; whether cyclically it does not say), then
           halved to 14 x 14 by means over 2 x 2 pixels, which makes a step four times as quick.

Ten classes, gpflow's MultiClass likelihood (robust maximum) over ten latent functions; a
SquaredExponential with one lengthscale, at first the median distance; minibatches, Adam. Inducing
points start at random training images: centres of k-means of shifted images are nearly constant
images, on which all components but one vanish.
svgp_m, svgp_Tm   gpflow's SVGP with m and with T*m inducing points;
matching          HVGP under flips of both axes (T = 4) or under shifts by a seventh of the width (4
                  of 28 pixels) along both axes ((7, 7)-cyclic, T = 16), m inducing points for each
                  component;
matching_shared   the same, m inducing points shared by all components (translate only);
negations         HVGP under negation of 2 (T = 4) or 4 (T = 16) groups of pixels through the mean.
The claim to show: matching transforms beat negations at equal T x m.

`--one-hot` replaces the likelihood by a Gaussian one on one-hot labels (less their mean of 0.1),
for which natural gradients (0.3, beside Adam) find the best q in tens of steps: it compares what
the models can explain, where a short training by Adam compares how quickly they move. `--untrained`
gives the Nystrom errors of the inducing points at the start alone.

`--collapsed` has these labels, too, and the optimal q all along, which is known in closed form:
L-BFGS (`--steps`) trains kernel, noise and points on all images, so that what is compared is what
the models can explain.

`--softmax` takes the softmax in place of the robust maximum, under which, `--natural-gradient 0.02`
for q needs some hundred steps where Adam needs thousands.

`--seconds 30,60,120` trains each model in a process of its own for as many seconds of its
processors in place of a number of steps, and looks at it at these times and after given steps: who
is in front after equal steps and after equal seconds, from one training. The picture is
transform_mnist.png.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.child import from_child
from benchmarks._lib.curves import draw_traces
from benchmarks._lib.data import Array, add_data_argument, for_a_process, source_of
from benchmarks._lib.looks import Trace, rising_times, trained_with_looks
from benchmarks._lib.negations import axis_negations
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import Record
from benchmarks._lib.resumable import train, training_folder
from benchmarks._lib.runner import Benchmark, Configuration, names, result_folder
from benchmarks.transform_mnist.collapsed import trained_with_optimal_q
from benchmarks.transform_mnist.digits import Digits, load_digits
from benchmarks.transform_mnist.table import (
    COMPONENTS,
    MODELS,
    STEPS_LOOKED_AT,
    tables_of,
    timed_groups,
)

NUM_CLASSES = 10
NATURAL_GRADIENT = 0.3  # with --one-hot
SHIFT_ORDER = 7  # a shift by 4 of 28 pixels
DEFAULT_INDUCING = {"flip": 100, "translate": 50}  # as in the paper
DEFAULT_PIXELS = {"flip": 28, "translate": 14}  # the paper: 28
DEFAULT_STEPS = {"flip": 2_000, "translate": 1_200}
PIXELS_HELP = "width of the images: default 28 (flip), 14 (translate)"
ROWS_FOR_LOSS = 1_000  # training rows on which the curve of the loss is evaluated


class TransformMnist(Benchmark):
    __doc__ = __doc__
    name = "transform_mnist"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--tasks", type=names(list(MODELS), "tasks"), default=None)
        parser.add_argument("--models", type=names(MODELS["translate"], "models"), default=None)
        parser.add_argument("--num-inducing", type=int, default=None, help="m: 100 (flip), 50")
        parser.add_argument("--images", type=int, default=None, help="to train on, default 10000")
        parser.add_argument("--pixels", type=int, choices=(28, 14), default=None, help=PIXELS_HELP)
        parser.add_argument("--steps", type=int, default=None, help="default 2000 (flip), 1200")
        parser.add_argument("--batch-size", type=int, default=200)
        parser.add_argument("--learning-rate", type=float, default=0.01, help="of Adam")
        parser.add_argument("--untrained", action="store_true", help="only the Nystrom errors")
        parser.add_argument("--one-hot", action="store_true", help="regression on one-hot labels")
        parser.add_argument("--collapsed", action="store_true", help="--one-hot, the optimal q")
        parser.add_argument("--natural-gradient", type=float, default=None, help="for q")
        parser.add_argument("--softmax", action="store_true", help="another likelihood")
        parser.add_argument(
            "--seconds", type=rising_times, default=None, help="in place of --steps"
        )
        parser.add_argument("--seed", type=int, default=0)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short, size = arguments.short, arguments.natural_gradient
        for task in arguments.tasks or MODELS:
            for model in MODELS[task]:
                if model not in (arguments.models or MODELS[task]):
                    continue
                if short and model not in ("svgp_m", "matching"):
                    continue
                yield {
                    "task": task,
                    "model": model,
                    "num_inducing": arguments.num_inducing
                    or (5 if short else DEFAULT_INDUCING[task]),
                    "images": arguments.images or (500 if short else 10_000),
                    "test_images": 200 if short else 10_000,
                    "pixels": arguments.pixels or DEFAULT_PIXELS[task],
                    "steps": 0
                    if arguments.untrained or arguments.seconds
                    else arguments.steps or (5 if short else DEFAULT_STEPS[task]),
                    "batch_size": arguments.batch_size,
                    "learning_rate": arguments.learning_rate,
                    "seed": arguments.seed,
                    "source": source_of(arguments.data_dir),
                    **({"one_hot": True} if arguments.one_hot or arguments.collapsed else {}),
                    **({"collapsed": True} if arguments.collapsed else {}),
                    **({"softmax": True} if arguments.softmax else {}),
                    **({"natural_gradient": size} if size is not None else {}),
                    **({"seconds": arguments.seconds} if arguments.seconds else {}),
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        if "seconds" in configuration:
            given = for_a_process(configuration, arguments.data_dir)
            return dict(from_child(trained_by_seconds, given=given))
        digits = digits_of(configuration, arguments.data_dir)
        model = build_model(configuration, digits)
        if configuration.get("collapsed"):
            trained = trained_with_optimal_q(model, digits, configuration["steps"])
            return {**digit_errors(model, digits), **trained}
        if configuration["steps"] == 0:
            return {"trace_error": trace_error(model, digits)}
        folder = training_folder(
            result_folder(arguments), self.name, configuration, start_afresh=arguments.rerun
        )
        trained = train(
            model,
            (digits.X_train, digits.Y_train),
            loss_per_image(digits),
            folder=folder,
            steps=configuration["steps"],
            batch_size=configuration["batch_size"],
            optimizer=configuration["learning_rate"],
            seed=configuration["seed"],
            natural_gradient=natural_gradient_of(configuration),
        )
        errors = digit_errors(model, digits)
        shutil.rmtree(folder)
        return {**errors, **trained}

    def table(self, records: Sequence[Record]) -> str:
        return tables_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        traces: dict[str, dict[str, Trace]] = {}
        for group, found in timed_groups(records).items():
            traces[f"{group[0]}, m = {group[1]}"] = {
                model: record["result"]["trace"] for model, record in found.items()
            }
        if traces:
            labels = {"nll": "NLL of test images", "loss": "train loss"}
            draw_traces(folder / "transform_mnist.png", traces, labels)


def natural_gradient_of(configuration: Configuration) -> float | bool:
    """The step size for q; False where Adam trains it."""
    default = NATURAL_GRADIENT if configuration.get("one_hot") else None
    return configuration.get("natural_gradient", default) or False


def digits_of(configuration: Configuration, data_dir: Path | None) -> Digits:
    """The images and labels of a configuration."""
    digits = load_digits(configuration, data_dir)
    if configuration.get("one_hot"):
        return dataclasses.replace(digits, Y_train=one_hot(digits.Y_train))
    return digits


def trained_by_seconds(given: dict[str, Any]) -> dict[str, Any]:
    """Train one model of a configuration with "seconds", in a process of its own."""
    import tensorflow as tf

    import interdomain  # noqa: F401 - imports are not counted

    tf.random.set_seed(given["seed"])
    folder = None if given["data_dir"] is None else Path(given["data_dir"])
    digits = digits_of(given, folder)
    started = time.process_time()
    model = build_model(given, digits)
    loss = loss_per_image(digits)
    trace = trained_with_looks(
        model,
        (digits.X_train, digits.Y_train),
        lambda model: {**digit_errors(model, digits, cached=False), **loss(model)},
        seconds=given["seconds"],
        steps=STEPS_LOOKED_AT,
        started=started,
        batch_size=given["batch_size"],
        optimizer=given["learning_rate"],
        natural_gradient=natural_gradient_of(given),
        seed=given["seed"],
    )
    return {"trace": trace}


def build_model(configuration: Configuration, digits: Digits) -> Any:
    """One model at its initial parameters."""
    import gpflow

    import interdomain as idm
    from benchmarks._lib.regression import median_distance

    task, name, m = (configuration[key] for key in ("task", "model", "num_inducing"))
    seed = configuration["seed"]
    kernel = gpflow.kernels.SquaredExponential(
        lengthscales=median_distance(digits.X_train, seed, max_rows=1_000)
    )
    kind = gpflow.likelihoods.Softmax if configuration.get("softmax") else None
    likelihood = (kind or gpflow.likelihoods.MultiClass)(NUM_CLASSES)
    if configuration.get("one_hot"):
        likelihood = gpflow.likelihoods.Gaussian(variance=0.03)
    T = COMPONENTS[task]
    Z = digits.X_train[np.random.default_rng(seed).permutation(len(digits.X_train))[: T * m]]
    settings = {"num_latent_gps": NUM_CLASSES, "num_data": len(digits.X_train)}
    if name in ("svgp_m", "svgp_Tm"):
        points = Z[:m].copy() if name == "svgp_m" else Z
        return gpflow.models.SVGP(kernel, likelihood, points, **settings)
    points = Z[:m] if name == "matching_shared" else Z.reshape(T, m, -1)
    transforms = transforms_of(task, name, digits.X_train)
    return idm.models.HVGP(kernel, likelihood, points, transforms, **settings)


def trace_error(model: Any, digits: Digits) -> float:
    """The prior variance of an image that the untrained points leave unexplained, on average."""
    import interdomain as idm

    rows = digits.X_train[-ROWS_FOR_LOSS:]  # inducing points are taken from the first
    error = idm.diagnostics.nystrom_trace_error(model.kernel, model.inducing_variable, rows)
    return float(error) / len(rows)


def one_hot(Y: NDArray[np.int64]) -> Array:
    """Labels [N, 1] as columns [N, 10] of zeros and ones, less their mean."""
    return np.eye(NUM_CLASSES)[Y[:, 0]] - 1 / NUM_CLASSES


def transforms_of(task: str, model: str, X: Array) -> Any:
    """The transforms that decompose the kernel into `COMPONENTS[task]` components."""
    import interdomain as idm

    pixels = round(X.shape[1] ** 0.5)

    if model == "negations":
        return axis_negations(X, COMPONENTS[task].bit_length() - 1)
    if task == "flip":
        axes = [idm.transforms.ImageFlip((pixels, pixels), axis) for axis in (0, 1)]
    else:
        step = pixels // SHIFT_ORDER
        shifts = ((step, 0), (0, step))
        axes = [idm.transforms.ImageTranslation((pixels, pixels), shift) for shift in shifts]
    return idm.transforms.Product(axes)


def loss_per_image(digits: Digits) -> Callable[[Any], dict[str, float]]:
    """What to evaluate during training: minus the ELBO per image, on the same rows every time."""
    import tensorflow as tf

    data = (tf.constant(digits.X_train[:ROWS_FOR_LOSS]), digits.Y_train[:ROWS_FOR_LOSS])
    compiled: dict[int, Any] = {}

    def evaluate(model: Any) -> dict[str, float]:
        loss = compiled.setdefault(id(model), tf.function(lambda: model.training_loss(data)))
        return {"loss": float(loss()) / len(digits.X_train)}

    return evaluate


def digit_errors(model: Any, digits: Digits, *, cached: bool = True) -> dict[str, float]:
    """Accuracy and mean negative log probability of the test images' classes (or, with one-hot
    labels, their mean negative log density).

    :param cached: pass False for a model that is still being trained.
    """
    import gpflow

    X, Y = digits.X_test, digits.Y_test
    predict = Predictor(model, X.shape[1], cached=cached)
    if not isinstance(model.likelihood, gpflow.likelihoods.Gaussian):
        return class_errors(model, X, Y, predict)
    mean, variance = predict(X)
    right = np.argmax(mean, axis=1) == Y[:, 0]
    density = model.likelihood.predict_log_density(X, mean, variance, one_hot(Y))
    return {"accuracy": float(right.mean()), "nll": -float(np.mean(density))}
