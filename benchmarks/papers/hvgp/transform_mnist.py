"""HVGP's Figures 2 and 4: transforms that match the data, and transforms that do not.

flip       every MNIST image is flipped up-down and left-right, each with probability one half.
translate  every image is shifted cyclically by random numbers of pixels, 0 to 27, along both axes.
           It is halved to 14 x 14 by means over 2 x 2 pixels. The paper shifts "leftwards and
           downwards"; it does not say whether cyclically.

Ten classes, ten latent functions; a SquaredExponential with one lengthscale, at first the median
distance. Inducing points start at random training images. Centres of k-means of shifted images
would be nearly constant images, on which all components except one vanish.
svgp_m, svgp_Tm   gpflow's SVGP with m and with T*m inducing points.
matching          HVGP with m inducing points for each component: under flips of both axes (T = 4),
                  or shifts by 4 of 28 pixels along both axes ((7, 7)-cyclic, T = 16).
matching_shared   matching; all components share m inducing points (only translate).
negations         HVGP under negation of 2 (T = 4) or 4 (T = 16) groups of pixels through the mean
                  image; a group has neighbouring rows of the image.
negations_grey    negations as in the authors' code: every second (or fourth) pixel makes a group,
                  which is negated about a grey of one half.
The paper's claim is that matching transforms are better than negations at equal T x m. Measures:
untrained   the Nystrom errors of the initial inducing points, of both tasks.
optimal_q   regression on one-hot labels (less their mean of 0.1) of flips of 14 x 14 pixels with
            the closed-form optimal q: 40 iterations of L-BFGS for kernel, noise and points on 5,000
            images. It compares what the models can explain.
robust_max  both tasks by minibatches of 256 images of 14 x 14 pixels. As in the authors' code, the
            likelihood is the robust maximum, and all blocks have equal initial points. The loss
            per image of 10,000 after 2,000 (flips, 50 points) or 600 (shifts, 20) steps of Adam
            0.01. The paper has 100,000 steps of Adam 0.001, with 100 and 50 points.
"""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np
from numpy.typing import NDArray

import interdomain as idm
from benchmarks._lib.data import Array, load_images, source_of
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.regression import median_distance
from benchmarks._lib.results import figures, runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import Split
from benchmarks._lib.tables import tabulated
from benchmarks.papers.hvgp.negations import axis_negations
from interdomain.diagnostics.variance import nystrom_trace_error

NUM_CLASSES = 10
SHIFT_ORDER = 7  # a shift by 4 of 28 pixels
COMPONENTS = {"flip": 4, "translate": 16}
MODELS = ("svgp_m", "svgp_Tm", "matching", "matching_shared", "negations", "negations_grey")
MEASURES: dict[str, Entries] = {
    "untrained": {},
    "optimal_q": {
        **{"collapsed": True, "one_hot": True},
        **{"images": 5_000, "pixels": 14, "steps": 40},
    },
    "robust_max": {"robust_max": True, "pixels": 14, "batch_size": 256},
}
NUM_INDUCING = {"flip": 100, "translate": 50}  # as in the paper
NUM_INDUCING_ROBUST_MAX = {"flip": 50, "translate": 20}


class TransformMnist(Benchmark, data_dir=str, measures=MEASURES):
    def configurations(self, arguments: Arguments) -> Configurations:
        for measure in arguments.measures or MEASURES:
            for task in ("flip",) if measure == "optimal_q" else COMPONENTS:
                for model in ("svgp_m", "matching") if arguments.short else MODELS:
                    if model == "matching_shared" and task == "flip":
                        continue
                    sizes = NUM_INDUCING_ROBUST_MAX if measure == "robust_max" else NUM_INDUCING
                    run = {
                        "task": task,
                        "model": model,
                        "num_inducing": sizes[task],
                        "images": 10_000,
                        "test_images": 10_000,
                        "pixels": {"flip": 28, "translate": 14}[task],  # the paper: 28
                        "steps": 0,
                        "batch_size": 200,
                        "learning_rate": 0.01,
                        "seed": 0,
                        "source": source_of(arguments.data_dir),
                        **MEASURES[measure],
                    }
                    if measure == "robust_max":
                        run["steps"] = {"flip": 2_000, "translate": 600}[task]
                    if arguments.short:
                        run |= {"num_inducing": 5, "images": 500, "test_images": 200}
                        run |= {"steps": min(run["steps"], 5)}
                    yield run

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        digits = load_digits(configuration, arguments.data_dir)
        model = build_model(configuration, digits)
        if "collapsed" in configuration:
            return trained_with_optimal_q(model, digits, configuration["steps"])
        if "robust_max" in configuration:
            return trained_by_minibatches(model, digits, configuration)
        return {"trace_error": unexplained(model, digits.X_train[-1_000:])}  # points: the first

    def table(self, records: Records) -> str:
        parts = [table_of_minibatches(records), table_of_optimal_q(records), untrained(records)]
        return "\n\n".join(part for part in parts if part)


def load_digits(configuration: Entries, data_dir: str | None) -> Split:
    """MNIST, a random part of its training images, transformed as the task says."""
    images = load_images("mnist", data_dir)
    generator = np.random.default_rng(configuration["seed"])
    chosen = generator.permutation(len(images.X_train))[: configuration["images"]]
    task, tested = configuration["task"], slice(configuration["test_images"])
    pixels = configuration["pixels"]
    return Split(
        flattened(transformed(images.X_train[chosen], task, generator), pixels),
        images.Y_train[chosen, None],
        flattened(transformed(images.X_test[tested], task, generator), pixels),
        images.Y_test[tested, None],
    )


def transformed(images: NDArray[Any], task: str, generator: np.random.Generator) -> NDArray[Any]:
    """The images [N, H, W], each flipped along each axis with probability one half, or shifted
    cyclically along both axes."""
    if task == "flip":
        flips = generator.integers(2, size=(len(images), 2)).astype(bool)
        images = np.where(flips[:, 0, None, None], images[:, ::-1], images)
        return np.where(flips[:, 1, None, None], images[:, :, ::-1], images)
    shifts = generator.integers(images.shape[1], size=(len(images), 2))
    pairs = zip(images, shifts, strict=True)
    return np.stack([np.roll(image, tuple(shift), axis=(0, 1)) for image, shift in pairs])


def flattened(images: NDArray[Any], pixels: int) -> Array:
    """Means over squares, as rows [N, pixels^2] between 0 and 1."""
    square = images.shape[1] // pixels
    squares = images.reshape(len(images), pixels, square, pixels, square)
    return np.asarray(squares.mean(axis=(2, 4)).reshape(len(images), -1) / 255.0)


def one_hot(Y: NDArray[np.int64]) -> Array:
    """Labels [N, 1] as columns [N, 10] of zeros and ones, less their mean."""
    return np.eye(NUM_CLASSES)[Y[:, 0]] - 1 / NUM_CLASSES


def build_model(configuration: Entries, digits: Split) -> Any:
    """A model at its initial parameters."""
    task, name, m = (configuration[key] for key in ("task", "model", "num_inducing"))
    seed, T = configuration["seed"], COMPONENTS[task]
    lengthscale = median_distance(digits.X_train, seed, max_rows=1_000)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscale)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.03)
    if "robust_max" in configuration:
        likelihood = gpflow.likelihoods.MultiClass(NUM_CLASSES)
    Z = digits.X_train[np.random.default_rng(seed).permutation(len(digits.X_train))[: T * m]]
    settings = {"num_latent_gps": NUM_CLASSES, "num_data": len(digits.X_train)}
    if name in ("svgp_m", "svgp_Tm"):
        points = Z[:m].copy() if name == "svgp_m" else Z
        return gpflow.models.SVGP(kernel, likelihood, points, **settings)
    points = Z[:m] if name == "matching_shared" else Z.reshape(T, m, -1)
    if "robust_max" in configuration and name != "matching_shared":
        points = np.repeat(Z[None, :m], T, axis=0)
    transforms = transforms_of(task, name, digits.X_train)
    return idm.models.HVGP(kernel, likelihood, points, transforms, **settings)


def transforms_of(task: str, model: str, X: Array) -> Any:
    """The transforms that decompose the kernel into `COMPONENTS[task]` components."""
    pixels = round(X.shape[1] ** 0.5)
    if model in ("negations", "negations_grey"):
        grey = np.full(X.shape[1], 0.5) if model == "negations_grey" else None
        return axis_negations(X, COMPONENTS[task].bit_length() - 1, interleaved_about=grey)
    if task == "flip":
        axes = [idm.transforms.ImageFlip((pixels, pixels), axis) for axis in (0, 1)]
    else:
        step = pixels // SHIFT_ORDER
        shifts = ((step, 0), (0, step))
        axes = [idm.transforms.ImageTranslation((pixels, pixels), shift) for shift in shifts]
    return idm.transforms.Product(axes)


def unexplained(model: Any, rows: Array) -> float:
    """The prior variance of an image that the points leave unexplained, on average."""
    error = nystrom_trace_error(model.kernel, model.inducing_variable, rows)
    return float(error) / len(rows)


def trained_with_optimal_q(model: Any, digits: Split, iterations: int) -> dict[str, float]:
    """Train the kernel, the noise and the inducing points by L-BFGS on the bound of the optimal q
    for one-hot labels. The figures are minus the bound per image before and after, iterations, CPU
    seconds, the unexplained share of the variance, and errors."""
    X, Y = digits.X_test, digits.Y_test
    optimal = OptimalQ(model, (digits.X_train, one_hot(digits.Y_train)))
    before = float(optimal.training_loss())
    started = time.process_time()
    fit = idm.fit(optimal, steps=iterations, progress=False)
    seconds = time.process_time() - started
    optimal.assign_q()
    mean, variance = Predictor(model, X.shape[1])(X)
    density = model.likelihood.predict_log_density(X, mean, variance, one_hot(Y))
    rows = digits.X_train[:1_000]
    prior = float(np.mean(model.kernel(rows, full_cov=False)))
    return {
        "accuracy": float(np.mean(np.argmax(mean, axis=1) == Y[:, 0])),
        "nll": -float(np.mean(density)),
        "loss_before": before / len(digits.X_train),
        "loss": float(optimal.training_loss()) / len(digits.X_train),
        "iterations": float(fit.steps),
        "train_seconds": seconds,
        "unexplained": unexplained(model, rows) / prior,
    }


def trained_by_minibatches(model: Any, digits: Split, run: Entries) -> dict[str, float]:
    """The loss per training image, errors on the test images, and seconds of a step."""
    data = digits.X_train, digits.Y_train
    started = time.process_time()
    idm.fit(
        model,
        data,
        steps=run["steps"],
        batch_size=min(run["batch_size"], len(digits.X_train)),
        optimizer=(None, run["learning_rate"]),
        options={"seed": run["seed"]},
    )
    seconds = time.process_time() - started
    batches = np.array_split(np.arange(len(digits.X_train)), 10)
    losses = [float(model.training_loss([part[rows] for part in data])) for rows in batches]
    return {
        **class_errors(model, digits.X_test, digits.Y_test),
        "loss": float(np.mean(losses)) / len(digits.X_train),
        "seconds_per_step": seconds / run["steps"],
    }


def table_of_minibatches(records: Records) -> str:
    rows = [{**one, "size": size_of(one)} for one in figures(records) if "robust_max" in one]
    table = tabulated(
        rows,
        "task; model; size; loss per image = loss .3f; accuracy = accuracy .4f; NLPD = nll .3f; "
        "CPU s per step = seconds_per_step .3f; steps",
    )
    return f"Minibatches, robust maximum\n\n{table}" if rows else ""


def table_of_optimal_q(records: Records) -> str:
    rows = [
        {**one, "size": size_of(one), "unexplained": 100 * one["unexplained"]}
        for one in figures(records)
        if "collapsed" in one
    ]
    table = tabulated(
        rows,
        "model; size; iterations = iterations .0f; loss before = loss_before .3f; loss = loss .3f; "
        "unexplained % = unexplained .2f; accuracy = accuracy .4f; NLPD = nll .3f; "
        "CPU s = train_seconds .0f",
    )
    return f"Flips, one-hot labels, always the optimal q\n\n{table}" if rows else ""


def untrained(records: Records) -> str:
    lines = []
    for task in COMPONENTS:
        errors = [
            f"{run['model']} {result['trace_error']:.4f}"
            for run, result in runs(records)
            if "trace_error" in result and run["task"] == task
        ]
        if errors:
            lines.append(f"Nystrom error per image before training, {task}: {', '.join(errors)}")
    return "\n\n".join(lines)


def size_of(run: Entries) -> str:
    """The number of inducing points as the paper writes it."""
    T, m = COMPONENTS[run["task"]], run["num_inducing"]
    return {"svgp_m": f"{m}", "svgp_Tm": f"{T * m}"}.get(run["model"], f"{T}x{m}")


if __name__ == "__main__":
    TransformMnist.command()
