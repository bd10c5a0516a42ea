"""Deep convolutional GPs: Sun et al. 2021, Table 2, with two layers.

mnist and the part of CIFAR-10 in `--data-dir` (5,000 training and 1,000 test images). The first
layer takes patches of 5 x 5 pixels, two pixels apart, to an image of ten channels, with the pixel
in the middle as its mean; the second is a convolutional GP for each class on patches of 3 x 3 of
that image, with a weight for each place. Squared exponentials, softmax likelihood, Adam and natural
gradients for the last layer, minibatches of 64, the same CPU seconds for each, tracing included:
M          M inducing patches in each layer
2M         twice as many
M+M        M, and M orthogonal to them
2xM        M for each of the two harmonic blocks of the negation, mean-field
The paper has all 50,000 images, M = 384 and 1,000, and GPUs: accuracies cannot be its, the order of
the models can.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import Images, add_data_argument, for_a_process, load_images, source_of
from benchmarks._lib.image_models import labelled_rows
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown

MODELS = ("M", "2M", "M+M", "2xM")
DATA = ("mnist", "cifar10")
PAPER = {"M": (76.40, 1.03), "2M": (77.11, 1.00), "M+M": (77.48, 0.98), "2xM": (77.09, 1.00)}
"""Accuracy in percent and negative log-likelihood of two layers on CIFAR-10."""

CHANNELS, FIRST, SECOND, STRIDE = 10, (5, 5), (3, 3), 2
BATCH_SIZE, EVALUATIONS, TEST_SAMPLES = 64, 4, 10


class DeepConv(Benchmark):
    __doc__ = __doc__
    name = "deep_conv"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(DATA, "data sets"), default=list(DATA))
        parser.add_argument("--models", type=names(MODELS, "models"), default=list(MODELS))
        parser.add_argument("--num-inducing", type=int, default=64)
        parser.add_argument("--images", type=int, default=5_000)
        parser.add_argument("--seconds", type=float, default=3_600.0, help="of CPU, for each model")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        made_up = short and arguments.data_dir is None
        for data in ["made up"] if made_up else arguments.datasets:
            for model in arguments.models:
                yield {
                    "data": data,
                    "model": model,
                    "num_inducing": 6 if short else arguments.num_inducing,
                    "images": 60 if short else arguments.images,
                    "seconds": 3.0 if short else arguments.seconds,
                    "seed": 0,
                    "source": "made up" if made_up else source_of(arguments.data_dir),
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return dict(from_child(measured, **for_a_process(configuration, arguments.data_dir)))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def measured(
    *,
    data: str,
    model: str,
    num_inducing: int,
    images: int,
    seconds: float,
    seed: int,
    data_dir: str | None,
) -> dict[str, Any]:
    """Train one model, in a process of its own; its errors by CPU seconds."""
    import gpflow

    import interdomain as idm

    folder = None if data_dir is None else Path(data_dir)
    found = made_up_images(images) if data == "made up" else load_images(data, folder)
    rows = labelled_rows(found, train=images, test=images // 5, seed=seed)
    started = time.process_time()
    deep_gp = built(model, rows.X_train, rows.shape, num_inducing, rows.num_classes, seed)
    trace: list[dict[str, float]] = []
    spent = 0.0  # on evaluations

    def judged(step: int, _: Any) -> None:
        nonlocal spent
        now = time.process_time()
        used = now - started - spent
        if used > seconds * (len(trace) + 1) / EVALUATIONS or used > seconds:
            trace.append({"seconds": used, "steps": step, **errors(deep_gp, rows)})
            spent += time.process_time() - now
        if used > seconds:
            raise idm.training.StopFit("the seconds are over")

    idm.fit(
        deep_gp,
        (rows.X_train, rows.Y_train),
        batch_size=min(BATCH_SIZE, len(rows.X_train) // 2),
        steps=10**9,
        optimizer=(gpflow.optimizers.NaturalGradient(0.05), 0.01),
        callbacks=[judged],
        progress=False,
        options={"every": 5, "seed": seed},
    )
    return {"trace": trace}


def errors(model: Any, rows: Any) -> dict[str, float]:
    """Accuracy and negative log-likelihood of the test images."""
    import interdomain as idm

    predict = idm.predict_in_batches
    options: dict[str, Any] = {"batch_size": 100, "progress": False}
    probabilities, _ = predict(model, rows.X_test, method="predict_y", **options)
    densities = predict(model, rows.X_test, Y=rows.Y_test, method="predict_log_density", **options)
    right = np.argmax(probabilities, axis=1) == rows.Y_test[:, 0]
    return {"accuracy": float(np.mean(right)), "nll": float(-np.mean(densities))}


def built(
    model: str, X: Any, shape: Sequence[int], num_inducing: int, num_classes: int, seed: int
) -> Any:
    """Two layers; the second on the image that the first one's mean makes."""
    import gpflow

    from interdomain import deep

    size = num_inducing * (2 if model == "2M" else 1)
    kernel, q = first_prior(model, X, shape, seed, size)
    for _, q_sqrt in q.variational_parameters:
        q_sqrt.assign(1e-2 * q_sqrt.numpy())
    first = deep.ConvolutionalLayer(
        kernel, q, len(X), "identity", image_shape=shape, patch_shape=FIRST, stride=STRIDE
    )
    hidden = first.predict(X[:500])[0].numpy()
    kernel, q = last_prior(model, hidden, first.output_image_shape, num_classes, seed, size)
    last = deep.Layer(kernel, q, len(X))
    return deep.DeepGP(
        [first, last],
        gpflow.likelihoods.Softmax(num_classes),
        num_prediction_samples=TEST_SAMPLES,
        seed=seed,
    )


def first_prior(model: str, X: Any, shape: Sequence[int], seed: int, size: int) -> Any:
    """Kernel and q on patches: points among those of the images."""
    from gpflow.inducing_variables import InducingPoints

    import interdomain as idm

    models = idm.models
    base = squared_exponential(X, shape, FIRST)
    options: dict[str, Any] = {"num_latent_gps": CHANNELS}
    Z = patches_of(X, shape, FIRST, size, seed)
    if model == "2xM":
        kernel = idm.kernels.HarmonicKernel(base, idm.transforms.Negation())
        points = idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, Z)
        return kernel, models.QPerBlock(kernel, points, **options)
    if model == "M+M":
        other = InducingPoints(patches_of(X, shape, FIRST, size, seed + 1))
        return base, models.OrthogonalQ(base, InducingPoints(Z), other, **options)
    return base, models.JointQ(base, InducingPoints(Z), **options)


def last_prior(
    model: str, X: Any, shape: Sequence[int], num_classes: int, seed: int, size: int
) -> Any:
    """A convolutional GP for each class."""
    import interdomain as idm

    models = idm.models
    base = squared_exponential(X, shape, SECOND)
    base.variance.assign(10.0)
    patches = idm.inducing_variables.InducingPatches
    Z = patches_of(X, shape, SECOND, size, seed)
    options: dict[str, Any] = {"num_latent_gps": num_classes}

    def convolutional(kernel: Any) -> Any:
        return idm.kernels.Convolutional(kernel, shape, SECOND)

    if model == "2xM":
        blocks = idm.kernels.HarmonicKernel(base, idm.transforms.Negation()).kernels
        kernel = sum_of([convolutional(block) for block in blocks])
        features = idm.inducing_variables.SumInducingVariables([patches(Z) for _ in blocks])
        return kernel, models.QPerBlock(kernel, features, **options)
    if model == "M+M":
        other = patches(patches_of(X, shape, SECOND, size, seed + 1))
        kernel = convolutional(base)
        return kernel, models.OrthogonalQ(kernel, patches(Z), other, **options)
    kernel = convolutional(base)
    return kernel, models.JointQ(kernel, patches(Z), **options)


def sum_of(kernels: Sequence[Any]) -> Any:
    """As GPflow has it."""
    import gpflow

    return gpflow.kernels.Sum(list(kernels))


def squared_exponential(X: Any, shape: Sequence[int], patch: Sequence[int]) -> Any:
    """With the usual distance of patches as its lengthscale."""
    import gpflow

    some = patches_of(X, shape, patch, 200, 0)
    distances = np.linalg.norm(some[:, None] - some[None], axis=-1)
    return gpflow.kernels.SquaredExponential(lengthscales=max(float(np.median(distances)), 0.1))


def patches_of(X: Any, shape: Sequence[int], patch: Sequence[int], size: int, seed: int) -> Any:
    """Different patches of the images, drawn at random, each moved a little."""
    rng = np.random.default_rng(seed)
    pixels = np.asarray(X).reshape([len(X), *shape[:2], -1])
    found = []
    while len(found) < size:
        image = rng.integers(len(X))
        row, column = (rng.integers(n - p + 1) for n, p in zip(shape[:2], patch, strict=True))
        cut = pixels[image, row : row + patch[0], column : column + patch[1]]
        if np.ptp(cut) > 0 or rng.random() < 0.01:
            found.append(cut.reshape(-1))
    return np.array(found) + 0.01 * rng.normal(size=[size, found[0].size])


def made_up_images(count: int) -> Images:
    """Ten classes of small images, a bright spot in another place for each."""
    rng = np.random.default_rng(0)

    def some(number: int) -> tuple[Any, Any]:
        labels = rng.integers(10, size=number)
        labels[:10] = np.arange(10)
        images = 50 * rng.random((number, 11, 11))
        for image, label in zip(images, labels, strict=True):
            image[label : label + 2, 2:5] += 150
        return images, labels

    return Images("made up", *some(count), *some(count))


def table_of(records: Sequence[Record]) -> str:
    """The last evaluation, and the curve."""
    rows = []
    for record in records:
        run, trace = record["configuration"], record["result"]["trace"]
        last = trace[-1]
        curve = ", ".join(f"{100 * p['accuracy']:.1f} ({p['seconds']:.0f} s)" for p in trace)
        paper = PAPER[run["model"]] if run["data"] == "cifar10" else ("", "")
        rows.append(
            [
                run["data"],
                run["model"],
                run["num_inducing"],
                last["steps"],
                f"{100 * last['accuracy']:.2f}",
                f"{last['nll']:.3f}",
                *paper,
                curve,
            ]
        )
    headers = ["data", "model", "M", "steps", "accuracy", "NLL"]
    return markdown([*headers, "paper's accuracy", "paper's NLL", "accuracy by seconds"], rows)


if __name__ == "__main__":
    sys.exit(DeepConv().main())
