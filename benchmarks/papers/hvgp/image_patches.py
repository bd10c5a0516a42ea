"""One-layer convolutional GPs on MNIST and on a part of CIFAR-10: Sun et al. 2021, Table 2, top.

M              gpflow's SVGP with M inducing patches.
2M             gpflow's SVGP with 2M inducing patches.
M + M          OrthogonalSVGP: M and M orthogonal patches (SOLVE-GP).
2 x M, 4 x M   AdditiveSVGP over HarmonicKernel: M patches for each part of the patch response. A
               part is even or odd under negations through the mean: of all pixels of a patch
               (2 x M), or of its upper and of its lower half (4 x M).

Ten latent GPs with one kernel: patches of 5 x 5, of all channels, every second (MNIST) or third
pixel, a squared exponential, a weight for each place. "places" is a factor: a kernel of the
patches' locations with an initial lengthscale of three pixels, as in the authors' code (TICK,
Dutordoir et al. 2020; they take a Matern-3/2). Softmax likelihood: under the robust maximum
the expected loss is nearly linear in the probability of an error. q then becomes certain even where
errors are unavoidable, and the log density is worse than that of a guess. Minibatches, natural
gradients of 0.02 for q (0.1 diverges after some hundred minibatches of a hundred images), Adam for
the rest. Each model runs in its own process. Its clock counts CPU seconds, start-up included, and
excludes imports and evaluations. Figures after equal steps and after equal seconds come from one
training.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from typing import Any

import gpflow
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import load_images, source_of
from benchmarks._lib.image_models import LabelledRows, labelled_rows
from benchmarks._lib.looks import bound_per_row, compared, trained_with_looks
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Record, Records
from benchmarks._lib.tables import tabulated
from benchmarks.papers.hvgp.negations import axis_negations

MODELS = ("m", "2m", "m_plus_m", "2xm", "4xm")
TITLES = {"m": "M", "2m": "2M", "m_plus_m": "M + M", "2xm": "2 x M", "4xm": "4 x M"}
SETS = {"m": 1, "2m": 2, "m_plus_m": 2, "2xm": 2, "4xm": 4}
"""The numbers of patches of the models, divided by M."""
HARMONIC = ("2xm", "4xm")
PAPER = {
    "m": ("65.70 ± 0.06", "1.65", "0.21"),
    "2m": ("67.84 ± 0.07", "1.52", "0.39"),
    "m_plus_m": ("67.67 ± 0.07", "1.50 ± 0.01", "0.39"),
    "2xm": ("66.26 ± 1.11", "1.76 ± 0.17", "0.45"),
    "4xm": ("67.76 ± 0.05", "1.51 ± 0.01", "0.52"),
}
"""Accuracy in percent, NLPD and seconds of an iteration on GPUs (4 x M on four of them). The data
are CIFAR-10, with M = 1,000."""
DATA = ("mnist", "cifar10")
NUM_IMAGES = {"mnist": 60_000, "cifar10": 5_000}
STRIDE = {"mnist": 2, "cifar10": 3}
BATCH = {"mnist": 100, "cifar10": 50}
LENGTHSCALE = {"mnist": 2.0, "cifar10": 1.0}
VARIANCE = {"mnist": 10.0, "cifar10": 100.0}
SECONDS = {"mnist": [10.0, 20.0, 40.0, 80.0], "cifar10": [10.0, 20.0, 40.0]}
STEPS = (100, 200, 300, 400, 600, 800, 1_200, 1_600)
ROWS_FOR_BOUND = 1_000
PATCH = (5, 5)
OF_GROUP = tuple("data num_inducing images batch_size learning_rate variance seed".split())


class ImagePatches(Benchmark, data_dir=str, datasets=DATA, models=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in arguments.datasets or (DATA[:1] if short else DATA):
            models = arguments.models or (("m", "4xm") if short else MODELS)
            for places, model in itertools.product((False, True), models):
                yield {
                    "data": data,
                    "model": model,
                    **({"places": True} if places else {}),
                    "num_inducing": 10 if short else 100,
                    "images": 200 if short else NUM_IMAGES[data],
                    "test_images": 100 if short else 5_000,
                    "batch_size": 20 if short else BATCH[data],
                    "learning_rate": 0.01,
                    "natural_gradient": 0.02,
                    "variance": VARIANCE[data],
                    "seconds": [0.5, 1.0] if short else SECONDS[data],
                    "seed": 0,
                    "source": source_of(arguments.data_dir),
                }

    def table(self, records: Records) -> str:
        """A table for each data set and size."""
        groups: dict[tuple[Any, ...], dict[str, Record]] = {}
        for record in records:
            run = record["configuration"]
            key = (*(run[name] for name in OF_GROUP), tuple(run["seconds"]), "places" in run)
            groups.setdefault(key, {})[run["model"]] = record
        return "\n\n".join(_table(key, found) for key, found in sorted(groups.items()))


def measured(**run: Any) -> dict[str, Any]:
    """Train one model, in its own process."""
    tf.random.set_seed(run["seed"])
    images = load_images(run["data"], run["data_dir"])
    rows = labelled_rows(images, train=run["images"], test=run["test_images"], seed=run["seed"])
    started = time.process_time()
    model = build_model(run, rows)
    few = rows.X_train[:ROWS_FOR_BOUND], rows.Y_train[:ROWS_FOR_BOUND]
    bound = bound_per_row(model, *few, len(rows.X_train))
    predict = Predictor(model, rows.X_test.shape[1], cached=False)
    trace = trained_with_looks(
        model,
        (rows.X_train, rows.Y_train),
        lambda model: {**class_errors(model, rows.X_test, rows.Y_test, predict), "bound": bound()},
        seconds=run["seconds"],
        steps=STEPS,
        started=started,
        batch_size=run["batch_size"],
        optimizer=(
            gpflow.optimizers.NaturalGradient(run["natural_gradient"]),
            run["learning_rate"],
        ),
        options={"seed": run["seed"]},
    )
    return {"trace": trace, "test_images": len(rows.X_test)}


def build_model(run: dict[str, Any], rows: LabelledRows) -> Any:
    """A model at its initial parameters."""
    name, M, data = run["model"], run["num_inducing"], run["data"]
    pixels, places = math.prod((*PATCH, *rows.shape[2:])), "places" in run
    base = gpflow.kernels.SquaredExponential(
        run["variance"], LENGTHSCALE[data], active_dims=range(pixels)
    )
    if places:
        base *= gpflow.kernels.SquaredExponential(
            lengthscales=3.0, active_dims=[pixels, pixels + 1]
        )
    kernel = idm.kernels.Convolutional(
        base, rows.shape, PATCH, stride=STRIDE[data], locations=places
    )
    likelihood = gpflow.likelihoods.Softmax(rows.num_classes)
    settings = {"num_latent_gps": rows.num_classes, "num_data": len(rows.X_train)}
    patches = idm.inducing_variables.InducingPatches
    Z = patches.from_data(kernel, rows.X_train, SETS[name] * M, seed=run["seed"]).Z.numpy()
    if name in HARMONIC:
        negations = axis_negations(Z[:, :pixels], SETS[name].bit_length() - 1)
        harmonic = idm.kernels.HarmonicKernel(kernel, negations)
        points = idm.inducing_variables.HarmonicInducingPoints.for_kernel(
            harmonic, Z.reshape(SETS[name], M, -1)
        )
        return idm.models.AdditiveSVGP(harmonic, likelihood, points, **settings)
    if name == "m_plus_m":
        both = patches(Z[:M]), patches(Z[M:])
        return idm.models.OrthogonalSVGP(kernel, likelihood, *both, **settings)
    return gpflow.models.SVGP(kernel, likelihood, patches(Z), **settings)


def _table(key: tuple[Any, ...], found: Mapping[str, Record]) -> str:
    data, num_inducing, images, *_, places = key
    models = [name for name in MODELS if name in found]
    traces = [found[name]["result"]["trace"] for name in models]
    seconds = found[models[0]]["configuration"]["seconds"]
    step, cells = compared(traces, STEPS, seconds, _figures)
    rows = []
    for name, cell in zip(models, cells, strict=True):
        paper = PAPER[name] if data == "cifar10" else ()
        theirs = dict(zip(("accuracy", "nll", "seconds"), paper, strict=False))
        patches = SETS[name] * num_inducing
        rows.append({"model": TITLES[name], "patches": patches, **theirs, **cell})
    then = "equal steps" if step is None else f"{step} steps"
    count = found[models[0]]["result"]["test_images"]
    kind = ", with places" if places else ""
    title = f"{data}{kind}, {images:,} images, M = {num_inducing}; {count:,} test images"
    return f"{title}\n\n" + tabulated(
        rows,
        "model; patches; paper: accuracy % = accuracy; paper: NLPD = nll; "
        f"paper: s per step = seconds; s per step = per_step .3f; error % after {then} = then_0; "
        f"NLPD then = then_1; bound then = then_2; error % after {seconds[-1]:.0f} s = last_0; "
        "final NLPD = last_1; final bound = last_2; steps",
    )


def _figures(look: Mapping[str, float]) -> list[str]:
    return [f"{100 * (1 - look['accuracy']):.2f}", f"{look['nll']:.3f}", f"{look['bound']:.3f}"]


if __name__ == "__main__":
    ImagePatches.command()
