"""Figures 3 to 6 of activation features with orthogonal variables, in one picture.

Snelson's 200 noisy points on a line, inputs and outputs standardised. Four combinations of a kernel
and an activation, each in three variants:
L8       8 levels (max_degree 7) and no orthogonal variables.
L16      16 levels (max_degree 15).
L8_K8    8 levels and K = 8 points as orthogonal variables (OrthogonalSVGP).
All have M = 8 units. On a line (d = 2) ReLU and softplus have the degrees 0, 1, 2, 4 and 6 up to 7.
These degrees have 9 harmonics, and no more units can be independent.

Every parameter is trained by L-BFGS (interdomain.fit). A record has the ELBO, the iterations and
their throughput. For the first seed it also has the predictions and the terms of their variance.
The picture, snelson.png, is drawn from the records.

Unlike in the paper, the sum of Kuf ends at the degree at which the sum of Kuu ends: a valid prior.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays, source_of
from benchmarks._lib.regression import inducing_points
from benchmarks._lib.results import significant
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Record, Records
from benchmarks._lib.tables import mean_and_deviation, ranges, tabulated
from interdomain.diagnostics.variance import VarianceTerms

KERNELS = ("matern52", "arc_cosine")
ACTIVATIONS = ("relu", "softplus")
VARIANTS = {"L8": (7, 0), "L16": (15, 0), "L8_K8": (7, 8)}  # max_degree, orthogonal points
NUM_UNITS = 8
COLOURS = {"L8": "C0", "L16": "C1", "L8_K8": "C2"}
KERNEL_NAMES = {"matern52": "Matern-5/2", "arc_cosine": "arc-cosine"}


class Snelson(Benchmark, data_dir=str, seeds=range):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        combinations = itertools.product(
            arguments.seeds or ([0] if short else range(5)),
            KERNELS[:1] if short else KERNELS,
            ACTIVATIONS[:1] if short else ACTIVATIONS,
            VARIANTS,
        )
        for seed, kernel, activation, variant in combinations:
            yield {
                "kernel": kernel,
                "activation": activation,
                "variant": variant,
                "num_units": NUM_UNITS,
                "max_iterations": 30 if short else 200,
                "seed": seed,
                "source": source_of(arguments.data_dir),
            }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        X, Y, X_test = standardised(arguments.data_dir)
        model = build_model(configuration, X)
        result = train(model, (X, Y), configuration["max_iterations"])
        if configuration["seed"] == 0:
            # Nine digits, because the terms of the variance are far larger than their sum.
            terms = idm.diagnostics.variance_terms(model, X_test)
            curves = {"mean": model.predict_f(X_test)[0], **terms._asdict()}
            result["curves"] = {k: significant(v.numpy()[:, 0]) for k, v in curves.items()}
        return result

    def table(self, records: Records) -> str:
        """One row for each combination and variant, with means over the seeds."""
        rows = []
        for key, found in _grouped(records).items():
            results = [record["result"] for record in found]
            names = ("elbo", "noise_variance", "iterations", "iterations_per_second")
            values = {name: [result[name] for result in results] for name in names}
            unfinished = sum(not result["converged"] for result in results)
            row = {"kernel": KERNEL_NAMES[key[0]], "activation": key[1], "variant": key[2]}
            row |= {"elbo": mean_and_deviation(values["elbo"], decimals=1)}
            row |= {"noise": mean_and_deviation(values["noise_variance"])}
            row |= {"unfinished": f"{unfinished} of {len(found)} at {key[3]}"}
            row |= {"seeds": ranges(record["configuration"]["seed"] for record in found)}
            row |= {name: np.mean(values[name]) for name in names[2:]}
            rows.append({**row, "best": max(values["elbo"])})
        return (
            "Snelson's data: means ± standard deviations over the seeds. The ELBO is that of "
            "standardised outputs, higher is better; the paper's Figure 6 gives no numbers.\n\n"
            + tabulated(
                rows,
                "kernel; activation; variant; ELBO = elbo; best ELBO = best .1f; "
                "noise variance = noise; iterations = iterations .0f; "
                "not converged = unfinished; iterations / s = iterations_per_second .0f; seeds",
            )
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Draw figures 3, 4 (predictions), 5 (terms of the variance) and 6 (ELBO, throughput)."""
        X, Y, X_test = standardised(arguments.data_dir)
        from matplotlib.figure import Figure

        groups = _grouped(records)
        combinations = list(dict.fromkeys(key[:2] for key in groups))
        if not combinations:
            return
        figure = Figure(figsize=(19.0, 2.7 * len(combinations)), layout="constrained")
        axes = figure.subplots(len(combinations), 6, squeeze=False)
        for row, combination in zip(axes, combinations, strict=True):
            title = f"{KERNEL_NAMES[combination[0]]}, {combination[1]}"
            for key, found in groups.items():
                if key[:2] != combination:
                    continue
                variant = key[2]
                first = [record for record in found if "curves" in record["result"]]
                column = list(VARIANTS).index(variant)
                if first:
                    _draw_prediction(row[column], X, Y, X_test, first[0]["result"])
                    if variant != "L16":
                        _draw_terms(row[3 + (variant == "L8_K8")], X_test, first[0]["result"])
                names, colour = ("iterations_per_second", "elbo"), COLOURS[variant]
                places = np.array([[one["result"][name] for name in names] for one in found])
                row[5].plot(*places.T, "o", color=colour, alpha=0.3, ms=4)
                row[5].plot(*places.mean(axis=0), "X", color=colour, ms=8, label=variant)
                row[5].set_xlabel("iterations per second", fontsize=7)
            for axis, name in zip(
                row, (*VARIANTS, "L8: variance", "L8_K8: variance"), strict=False
            ):
                axis.set_title(f"{title}: {name}", fontsize=9)
            row[5].set_title(f"{title}: throughput, ELBO", fontsize=9)
        for axis in axes[0, 3:]:
            axis.legend(fontsize=6)
        figure.savefig(folder / "snelson.png", dpi=70)


def standardised(data_dir: str | None) -> tuple[Array, Array, Array]:
    """X, Y and every third of X_test of `snelson1d`, standardised by X and Y."""
    arrays = load_arrays("snelson1d", data_dir)
    X, Y, X_test = (np.asarray(arrays[name], dtype=np.float64) for name in ("X", "Y", "X_test"))
    centre, scale = X.mean(axis=0), X.std(axis=0)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    return (X - centre) / scale, Y, (X_test[::3] - centre) / scale


def build_model(configuration: Mapping[str, Any], X: Array) -> Any:
    """A model at its initial parameters; directions of units are random, points are by k-means."""
    kernel = {
        "matern52": lambda: idm.kernels.SphericalMatern52(lengthscale=0.5),
        "arc_cosine": lambda: idm.kernels.ArcCosine(order=1),
    }[configuration["kernel"]]()
    max_degree, num_points = VARIANTS[configuration["variant"]]
    seed = configuration["seed"]
    units = idm.inducing_variables.ActivationFeatures.random(
        1, configuration["num_units"], configuration["activation"], max_degree, seed=seed
    )
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    if num_points == 0:
        return gpflow.models.SVGP(kernel, likelihood, units)
    points = gpflow.inducing_variables.InducingPoints(inducing_points(X, num_points, seed))
    return idm.models.OrthogonalSVGP(kernel, likelihood, units, points)


def train(model: Any, data: tuple[Array, Array], max_iterations: int) -> dict[str, Any]:
    """Train by L-BFGS; the throughput is that of the median iteration, without compilation."""
    times: list[float] = []
    outcome = idm.fit(
        model,
        data,
        steps=max_iterations,
        callbacks=[lambda step, model: times.append(time.perf_counter())],
        options={"every": 1},
    )
    return {
        "elbo": outcome.elbo,
        "iterations": outcome.steps,
        "converged": outcome.converged,
        "ended": outcome.message,
        "iterations_per_second": 1 / float(np.median(np.diff(times))),
        "fit_seconds": round(outcome.seconds, 2),
        "noise_variance": float(model.likelihood.variance.numpy()),
        "kernel": {
            name.lstrip("."): parameter.numpy().tolist()
            for name, parameter in gpflow.utilities.parameter_dict(model.kernel).items()
        },
    }


def _draw_prediction(axis: Any, X: Array, Y: Array, X_test: Array, result: Any) -> None:
    curves = {name: np.array(values) for name, values in result["curves"].items()}
    mean = curves.pop("mean")
    deviation = np.sqrt(VarianceTerms(**curves).variance + result["noise_variance"])
    x = X_test[:, 0]
    axis.plot(X, Y, "k.", ms=2)
    axis.plot(x, mean, "C0")
    axis.fill_between(x, mean - 2 * deviation, mean + 2 * deviation, color="C0", alpha=0.25, lw=0)
    axis.set_ylim(-4.0, 4.0)
    elbo, iterations = result["elbo"], result["iterations"]
    axis.text(0.02, 0.03, f"ELBO {elbo:.0f}, {iterations} it.", transform=axis.transAxes, size=7)


def _draw_terms(axis: Any, X_test: Array, result: Any) -> None:
    columns = {
        name: tf.constant(values, tf.float64)[:, None]
        for name, values in result["curves"].items()
        if name != "mean"
    }
    VarianceTerms(**columns).plot(X_test, axis)
    axis.get_legend().remove()
    among_data = np.abs(X_test[:, 0]) < 1.8
    highest = max(np.max(line.get_ydata()[among_data], initial=0.0) for line in axis.lines)
    axis.set_ylim(0.0, 1.3 * highest or 1.0)


def _grouped(records: Records) -> dict[tuple[str, str, str, int, str], list[Record]]:
    """The trainings by kernel, activation, variant, iterations and source, in a fixed order."""
    groups: dict[tuple[str, str, str, int, str], list[Record]] = {}
    for record in records:
        run = record["configuration"]
        key = (run["kernel"], run["activation"], run["variant"], run["max_iterations"])
        groups.setdefault((*key, run["source"]), []).append(record)
    order = (KERNELS, ACTIVATIONS, tuple(VARIANTS))
    return {
        key: groups[key]
        for key in sorted(
            groups,
            key=lambda k: (*(names.index(n) for names, n in zip(order, k[:3], strict=True)), k[3:]),
        )
    }


if __name__ == "__main__":
    Snelson.command()
