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
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array, add_data_argument, source_of
from benchmarks._lib.negations import axis_negations
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import Record
from benchmarks._lib.resumable import train, training_folder
from benchmarks._lib.runner import Benchmark, Configuration, names, result_folder
from benchmarks._lib.tables import markdown
from benchmarks.transform_mnist.digits import Digits, load_digits

NUM_CLASSES = 10
NATURAL_GRADIENT = 0.3  # with --one-hot
SHIFT_ORDER = 7  # a shift by 4 of 28 pixels
COMPONENTS = {"flip": 4, "translate": 16}
DEFAULT_INDUCING = {"flip": 100, "translate": 50}  # as in the paper
DEFAULT_PIXELS = {"flip": 28, "translate": 14}  # the paper: 28
DEFAULT_STEPS = {"flip": 2_000, "translate": 1_200}
MODELS = {
    "flip": ("svgp_m", "svgp_Tm", "matching", "negations"),
    "translate": ("svgp_m", "svgp_Tm", "matching", "matching_shared", "negations"),
}
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
        parser.add_argument("--seed", type=int, default=0)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
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
                    if arguments.untrained
                    else arguments.steps or (5 if short else DEFAULT_STEPS[task]),
                    "batch_size": arguments.batch_size,
                    "learning_rate": arguments.learning_rate,
                    "seed": arguments.seed,
                    "source": source_of(arguments.data_dir),
                    **({"one_hot": True} if arguments.one_hot else {}),
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        digits = load_digits(configuration, arguments.data_dir)
        if configuration.get("one_hot"):
            digits = dataclasses.replace(digits, Y_train=one_hot(digits.Y_train))
        model = build_model(configuration, digits)
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
            learning_rate=configuration["learning_rate"],
            seed=configuration["seed"],
            natural_gradient=NATURAL_GRADIENT if configuration.get("one_hot") else False,
        )
        errors = digit_errors(model, digits)
        shutil.rmtree(folder)
        return {**errors, **trained}

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


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
    likelihood = gpflow.likelihoods.MultiClass(NUM_CLASSES)
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


def digit_errors(model: Any, digits: Digits) -> dict[str, float]:
    """Accuracy and mean negative log probability of the test images' classes (or, with one-hot
    labels, their mean negative log density)."""
    import gpflow

    X, Y = digits.X_test, digits.Y_test
    if not isinstance(model.likelihood, gpflow.likelihoods.Gaussian):
        return class_errors(model, X, Y)
    mean, variance = Predictor(model, X.shape[1])(X)
    right = np.argmax(mean, axis=1) == Y[:, 0]
    density = model.likelihood.predict_log_density(X, mean, variance, one_hot(Y))
    return {"accuracy": float(right.mean()), "nll": -float(np.mean(density))}


def table_of(records: Sequence[Record]) -> str:
    """One row per task, size and model; then whether matching transforms beat negations."""
    groups: dict[tuple[Any, ...], dict[str, Record]] = {}
    untrained: dict[str, dict[str, float]] = {}
    for record in records:
        run = record["configuration"]
        if run["steps"] == 0:
            errors = untrained.setdefault(f"{run['task']}, m = {run['num_inducing']}", {})
            errors[run["model"]] = record["result"]["trace_error"]
            continue
        group = tuple(
            run[key]
            for key in ("task", "pixels", "num_inducing", "images", "steps", "learning_rate")
        )
        group += (run["batch_size"], run["seed"], run["source"], run.get("one_hot", False))
        groups.setdefault(group, {})[run["model"]] = record
    rows, lines = [], []
    for group in sorted(groups):
        task, pixels, m, images, steps, _, _, seed, _, regression = group
        results = {model: record["result"] for model, record in groups[group].items()}
        for model in (name for name in MODELS[task] if name in results):
            result = results[model]
            rows.append(
                (
                    task,
                    model,
                    size_of(model, task, m),
                    pixels,
                    f"{images:,}",
                    f"{steps:,}",
                    "one-hot" if regression else "classes",
                    seed,
                    f"{result['accuracy']:.4f}",
                    _number(result["nll"]),
                    _number(result["curve"][-1]["loss"]),
                    f"{result['seconds_per_step']:.3f}",
                    f"{result['train_seconds']:.0f}",
                )
            )
        if "matching" in results and "negations" in results:
            labels = "one-hot labels" if regression else "classes"
            lines.append(f"{task}, {labels}, {steps:,} steps, seed {seed}: {_claim(results)}")
    for title, errors in untrained.items():
        values = ", ".join(f"{model} {error:.4f}" for model, error in errors.items())
        lines.append(f"Nystrom error per image before training, {title}: {values}")
    headers = (
        *("task", "model", "size", "pixels", "images", "steps", "labels", "seed"),
        *("train loss", "s per step", "training s"),
    )
    return (
        "MNIST, transformed: test accuracy and NLL; train loss is minus the ELBO per image. The "
        "paper's Figures 2 and 4 give no numbers: matching transforms far above negations, and no "
        "worse than SVGP with T*m.\n\n"
        + markdown(headers, rows)
        + "".join(f"\n\n{line}" for line in lines)
    )


def size_of(model: str, task: str, num_inducing: int) -> str:
    """The number of inducing points as the paper writes it."""
    T = COMPONENTS[task]
    sizes = {"svgp_m": f"{num_inducing}", "svgp_Tm": f"{T * num_inducing}"}
    return sizes.get(model, f"{T}x{num_inducing}")


def _claim(results: dict[str, Any]) -> str:
    matching, negations = results["matching"], results["negations"]
    more = matching["accuracy"] - negations["accuracy"]
    text = f"matching transforms beat negations by {more:.4f} in accuracy: {_met(more > 0)}"
    if matching["nll"] is not None and negations["nll"] is not None:
        less = negations["nll"] - matching["nll"]
        text += f"; by {less:.3f} in NLL: {_met(less > 0)}"
    return text


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
