"""Deep convolutional GPs: Sun et al. 2021, Table 2, with two layers.

mnist and the part of CIFAR-10 in `--data-dir` (5,000 training and 1,000 test images). The first
layer maps patches of 5 x 5 pixels, two pixels apart, to an image of ten channels; its mean is the
pixel in the middle. The second layer is a convolutional GP for each class on patches of 3 x 3 of
that image, with a weight for each place. Squared exponentials, softmax likelihood, Adam, natural
gradients for the last layer, minibatches of 64, equal CPU seconds for each, tracing included.
M          M inducing patches in each layer.
2M         twice as many.
M+M        M, and M orthogonal to them.
2xM        M for each of the two harmonic blocks of the negation of patches, mean-field. In the
           second layer they are the blocks of one convolutional kernel.
2xM (sum)  2xM, with a convolutional kernel for each block in the second layer: an equal model.
The protocol "authors" is that of the authors' code. The kernel of the second layer is multiplied by
a kernel of the patches' locations (TICK, Dutordoir et al. 2020; the authors take a Matern-3/2). The
channels of the first layer share one covariance of q. The protocol "simple" has neither.
The paper has all 50,000 images, M = 384 and 1,000, and GPUs. The order of the models can be the
paper's, accuracies cannot.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import load_images, source_of
from benchmarks._lib.image_models import labelled_rows
from benchmarks._lib.looks import seconds_per_step, trained_with_looks
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Records
from benchmarks._lib.tables import tabulated

MODELS = ("M", "2M", "M+M", "2xM", "2xM (sum)")
DATA = ("mnist", "cifar10")
PAPER = {"M": (76.40, 1.03), "2M": (77.11, 1.00), "M+M": (77.48, 0.98), "2xM": (77.09, 1.00)}
PAPER["2xM (sum)"] = PAPER["2xM"]
"""Accuracy in percent and NLPD of two layers on CIFAR-10."""

CHANNELS, FIRST, SECOND, STRIDE = 10, (5, 5), (3, 3), 2
BATCH_SIZE, EVALUATIONS, TEST_SAMPLES = 64, 2, 10


class DeepConv(Benchmark, data_dir=str, datasets=DATA, models=MODELS, seconds=float):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in (arguments.datasets or DATA)[: 1 if short else None]:
            models = ("M", "2xM") if short else arguments.models or MODELS
            for as_authors, model in itertools.product((True,) if short else (False, True), models):
                if as_authors and model == "2xM (sum)":
                    continue
                yield {
                    "data": data,
                    "model": model,
                    **({"as_authors": True} if as_authors else {}),
                    "num_inducing": 6 if short else 64,
                    "images": 60 if short else 5_000,
                    "seconds": 3.0 if short else arguments.seconds or 150.0,
                    "seed": 0,
                    "source": source_of(arguments.data_dir),
                }

    def table(self, records: Records) -> str:
        """The last evaluation, and the accuracy by seconds."""
        rows = []
        for run, result in runs(records):
            trace, paper = result["trace"], PAPER[run["model"]] if run["data"] == "cifar10" else ()
            curve = (f"{100 * p['accuracy']:.1f} ({p['seconds']:.0f} s)" for p in trace)
            rows.append(
                {
                    **run,
                    **trace[-1],
                    "percent": 100 * trace[-1]["accuracy"],
                    "protocol": "authors" if "as_authors" in run else "simple",
                    "per_step": seconds_per_step(trace),
                    **dict(zip(("their_accuracy", "their_nll"), paper, strict=False)),
                    "curve": ", ".join(curve),
                }
            )
        return tabulated(
            rows,
            "data; model; protocol; M = num_inducing; CPU s per step = per_step .2f; "
            "steps = steps .0f; accuracy = percent .2f; NLPD = nll .3f; "
            "paper's accuracy = their_accuracy; paper's NLPD = their_nll; "
            "accuracy by seconds = curve",
        )


def measured(**run: Any) -> dict[str, Any]:
    """Train one model, in its own process; return its errors by CPU seconds."""
    images = load_images(run["data"], run["data_dir"])
    number = run["images"]
    rows = labelled_rows(images, train=number, test=number // 5, seed=run["seed"])
    started = time.process_time()
    model = built(run, rows.X_train, rows.shape, rows.num_classes)
    trace = trained_with_looks(
        model,
        (rows.X_train, rows.Y_train),
        lambda model: errors(model, rows),
        seconds=[run["seconds"] * share / EVALUATIONS for share in range(1, EVALUATIONS + 1)],
        steps=(),
        started=started,
        batch_size=min(BATCH_SIZE, number // 2),
        optimizer=(gpflow.optimizers.NaturalGradient(0.05), 0.01),
        options={"seed": run["seed"]},
    )
    return {"trace": trace}


def errors(model: Any, rows: Any) -> dict[str, float]:
    """Accuracy and NLPD of the test images."""
    predict = idm.predict_in_batches
    options: dict[str, Any] = {"batch_size": 100, "progress": False}
    probabilities, _ = predict(model, rows.X_test, method="predict_y", **options)
    densities = predict(model, rows.X_test, Y=rows.Y_test, method="predict_log_density", **options)
    right = np.argmax(probabilities, axis=1) == rows.Y_test[:, 0]
    return {"accuracy": float(np.mean(right)), "nll": float(-np.mean(densities))}


def built(run: dict[str, Any], X: Any, shape: Sequence[int], num_classes: int) -> Any:
    """Two layers; the inputs of the second are images of the first layer's mean."""
    from interdomain import deep  # needs the extra of this name

    kernel, q = prior(run, X, shape, FIRST, CHANNELS, convolutional=False)
    for _, q_sqrt in q.variational_parameters:
        q_sqrt.assign(1e-2 * q_sqrt.numpy())
    first = deep.ConvolutionalLayer(
        kernel, q, len(X), "identity", image_shape=shape, patch_shape=FIRST, stride=STRIDE
    )
    hidden = first.predict(X[:500])[0].numpy()
    output_shape = first.output_image_shape
    kernel, q = prior(run, hidden, output_shape, SECOND, num_classes, convolutional=True)
    return deep.DeepGP(
        [first, deep.Layer(kernel, q, len(X))],
        gpflow.likelihoods.Softmax(num_classes),
        num_prediction_samples=TEST_SAMPLES,
        seed=run["seed"],
    )


def prior(
    run: dict[str, Any],
    X: Any,
    shape: Sequence[int],
    patch: Sequence[int],
    num_latent_gps: int,
    *,
    convolutional: bool,
) -> tuple[Any, Any]:
    """Kernel and q of a layer: on patches, with points among those of the images, or on images."""
    model, seed, size = run["model"], run["seed"], run["num_inducing"]
    places = convolutional and "as_authors" in run
    count = size * (2 if model == "2M" else 1)
    Z, Z2 = (patches_of(X, shape, patch, count, seed + k, places=places) for k in (0, 1))
    some = patches_of(X, shape, patch, 200, 0)
    usual = max(float(np.median(np.linalg.norm(some[:, None] - some[None], axis=-1))), 0.1)
    kernel: Any = gpflow.kernels.SquaredExponential(
        10.0 if convolutional else 1.0, usual, active_dims=range(some.shape[1])
    )
    negation = idm.transforms.Negation(dims=kernel.active_dims)
    if places:
        pixels = len(kernel.active_dims)
        kernel *= gpflow.kernels.SquaredExponential(
            lengthscales=3.0, active_dims=[pixels, pixels + 1]
        )
    points: Any = gpflow.inducing_variables.InducingPoints
    shared = not convolutional and "as_authors" in run
    options: Any = {"num_latent_gps": num_latent_gps, "q_shared": shared}

    def on_images(base: Any) -> Any:
        return idm.kernels.Convolutional(base, shape, patch, locations=places)

    if convolutional:
        points = idm.inducing_variables.InducingPatches
        if model != "2xM (sum)":
            kernel = on_images(kernel)
    if model.startswith("2xM"):
        kernel = idm.kernels.HarmonicKernel(kernel, negation)
        features: Any = idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, [Z, Z2])
        if convolutional and model == "2xM (sum)":
            kernel = gpflow.kernels.Sum([on_images(block) for block in kernel.kernels])
            features = idm.inducing_variables.SumInducingVariables([points(Z), points(Z2)])
        return kernel, idm.models.QPerBlock(kernel, features, **options)
    if model == "M+M":
        both = points(Z), points(Z2)
        return kernel, idm.models.OrthogonalQ(kernel, *both, **options)
    return kernel, idm.models.JointQ(kernel, points(Z), **options)


def patches_of(
    X: Any,
    shape: Sequence[int],
    patch: Sequence[int],
    size: int,
    seed: int,
    *,
    places: bool = False,
) -> Any:
    """Different patches of the images, drawn at random and perturbed, with their places."""
    rng = np.random.default_rng(seed)
    pixels = np.asarray(X).reshape([len(X), *shape[:2], -1])
    found, corners = [], []
    while len(found) < size:
        image = rng.integers(len(X))
        row, column = (rng.integers(n - p + 1) for n, p in zip(shape[:2], patch, strict=True))
        cut = pixels[image, row : row + patch[0], column : column + patch[1]]
        if np.ptp(cut) > 0 or rng.random() < 0.01:
            found.append(cut.reshape(-1))
            corners.append([row, column])
    Z = np.array(found) + 0.01 * rng.normal(size=[size, found[0].size])
    return np.concatenate([Z, corners], axis=1) if places else Z


if __name__ == "__main__":
    DeepConv.command()
