"""The earth's elevation: HVGP's Table 1 on a coarser grid (test RMSE and NLPD, lower is better).

540 x 1,080 elevations (20 arc minutes), standardised; 72% of them for training, 8% for validation
(not used here), 20% for testing, drawn at random. Inputs are unit vectors in R^3; the kernel is
gpflow's SquaredExponential with one lengthscale. Minibatches of 1,000; 200 steps of Adam 0.01 with
natural gradients of 0.1 for q.
svgp_m, svgp_3m     gpflow's SVGP with m and 3m inducing points.
hvgp_7xm, hvgp_13xm HVGP under shifts of 30 and 15 degrees of longitude (order 12 and 24: 7 and 13
                    components), with m inducing points for each component.
"""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import load_arrays, source_of
from benchmarks._lib.elevations import split
from benchmarks._lib.looks import train
from benchmarks._lib.race import evaluated
from benchmarks._lib.regression import inducing_points
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import Split
from benchmarks._lib.tables import tabulated

SHIFTS = {"hvgp_7xm": 12, "hvgp_13xm": 24}  # the order of the longitude shift
COMPONENTS = {"svgp_m": 1, "svgp_3m": 3, "hvgp_7xm": 7, "hvgp_13xm": 13}
MODELS = ("svgp_m", "svgp_3m", "hvgp_7xm", "hvgp_13xm")
INITIAL_LENGTHSCALE = 0.15
BATCH_SIZE = 1_000
ROWS_FOR_CENTRES = 20_000  # training rows for k-means

# Table 1 of the paper (Sun, Shi, Wilson, Grosse, ICML 2021): test RMSE, test NLPD, hours.
# On 6,480,000 elevations (6 arc minutes), m = 1,000, 100,000 steps, one GPU (HVGP: four).
PAPER = {
    "svgp_m": ("1k", 0.252, 0.040, 0.38),
    "svgp_3m": ("3k", 0.208, -0.146, 2.47),
    "svgp_5m": ("5k", 0.196, -0.203, 8.70),
    "hvgp_7xm": ("7x1k", 0.189, -0.246, 1.55),
    "hvgp_13xm": ("13x1k", 0.177, -0.314, 4.25),
}


class Elevation(Benchmark, data_dir=str, models=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for model in arguments.models or (("svgp_m", "hvgp_7xm") if short else MODELS):
            yield {
                "model": model,
                "num_inducing": 20 if short else 300,
                "steps": 20 if short else 200,
                "batch_size": BATCH_SIZE,
                "learning_rate": 0.01,
                "natural_gradient": 0.1,
                "test_rows": 2_000 if short else None,  # None: all rows
                "seed": 0,
                "source": source_of(arguments.data_dir),
            }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        rows = load_elevations(arguments.data_dir, configuration["seed"])
        model = build_model(configuration, rows)
        natural = gpflow.optimizers.NaturalGradient(configuration["natural_gradient"])
        trained = train(
            model,
            (rows.X_train, rows.Y_train),
            hyperparameters,
            steps=configuration["steps"],
            batch_size=configuration["batch_size"],
            optimizer=(natural, configuration["learning_rate"]),
            seed=configuration["seed"],
        )
        start = time.perf_counter()
        tested = slice(configuration["test_rows"])
        errors = evaluated(model, (rows.X_test[tested], rows.Y_test[tested]))
        seconds = time.perf_counter() - start
        return {**errors, **trained, "num_train": len(rows.X_train), "test_seconds": seconds}

    def table(self, records: Records) -> str:
        """One row for each model and size, with the paper's figures."""
        rows = []
        order = sorted(figures(records), key=lambda o: (o["steps"], MODELS.index(o["model"])))
        for one in order:
            gamma, names = one["natural_gradient"], ("size", "their_rmse", "their_nll", "hours")
            q = "Adam" if gamma is None else f"natural {gamma:g}"
            rows.append({**one, "q": q, **dict(zip(names, PAPER[one["model"]], strict=True))})
        table = tabulated(
            rows,
            "model; m = num_inducing; steps = steps ,; q by = q; RMSE = rmse .3f; NLPD = nll .3f; "
            "s per step = seconds_per_step .3f; training s = train_seconds .0f; "
            "paper's size = size; paper's RMSE = their_rmse .3f; paper's NLPD = their_nll .3f; "
            "paper's hours = hours .2f",
        )
        _, rmse, nll, hours = PAPER["svgp_5m"]
        return (
            "Elevation: test RMSE and NLPD of standardised elevations. The paper's figures are for "
            "another grid, m = 1,000 and 100,000 steps: compare the order of the models, not the "
            f"figures.\nThe paper also has SVGP 5k: {rmse:.3f}, {nll:.3f}, {hours:.2f} h.\n\n"
            + table
        )


def load_elevations(data_dir: str | None, seed: int) -> Split:
    """Unit vectors and elevations of `etopo20`, which are standardised by the training rows."""
    arrays = load_arrays("etopo20", data_dir)
    heights = np.asarray(arrays["elevation"], dtype=np.float64)
    longitudes, latitudes = np.meshgrid(arrays["lon"], arrays["lat"])
    degrees = np.stack([longitudes.reshape(-1), latitudes.reshape(-1)], axis=1)
    train, test = split(heights.size, seed)
    Y = heights.reshape(-1, 1)
    Y = (Y - Y[train].mean()) / Y[train].std()
    X = np.asarray(idm.sphere.unit_vectors(degrees[:, ::-1]))
    return Split(X[train], Y[train], X[test], Y[test])


def build_model(configuration: Entries, data: Split) -> Any:
    """A model at its initial parameters; inducing points are centres of k-means."""
    name, num_inducing = configuration["model"], configuration["num_inducing"]
    kernel = gpflow.kernels.SquaredExponential(lengthscales=INITIAL_LENGTHSCALE)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
    rows = data.X_train[:ROWS_FOR_CENTRES]  # the order of the rows is random
    num_data, seed = len(data.X_train), configuration["seed"]
    if name.startswith("svgp"):
        Z = inducing_points(rows, COMPONENTS[name] * num_inducing, seed)
        return gpflow.models.SVGP(kernel, likelihood, Z, num_data=num_data)
    shift = idm.transforms.LongitudeShift(SHIFTS[name], coordinates="euclidean")
    harmonic = idm.kernels.HarmonicKernel(kernel, shift)
    points = idm.inducing_variables.HarmonicInducingPoints.from_data(
        harmonic, rows, num_inducing, seed=seed
    )
    return idm.models.AdditiveSVGP(harmonic, likelihood, points, num_data=num_data)


def hyperparameters(model: Any) -> dict[str, float]:
    """The trained parameters of the kernel and the noise."""
    kernel = getattr(model.kernel, "base_kernel", model.kernel)
    return {
        "lengthscale": float(kernel.lengthscales.numpy()),
        "variance": float(kernel.variance.numpy()),
        "noise_variance": float(model.likelihood.variance.numpy()),
    }


if __name__ == "__main__":
    Elevation.command()
