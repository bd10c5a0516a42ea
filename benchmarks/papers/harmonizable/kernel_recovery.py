"""Known non-stationary kernels recovered by harmonizable mixtures: Shen, Heinonen and Kaski 2019,
section 5.1 and Figures 3 and 5.

gsm         a generalized spectral mixture of one part on [-1, 1] (eqs. 72 and 73), with
            w(x) = 1 + 0.3 sin(pi x), l(x) = 0.4 + 0.1 cos(pi x), mu(x) = 2 + x;
ifbm_0.5    time-inverted fractional Brownian motion on (0.1, 1.1], h = 1/2: 1 / max(s, t);
ifbm_0.75   the same with h = 3/4, which is smoother.
The paper does not give w, l, mu and h. Each target is approximated by
hmk         a HarmonizableMixture of P components with Q frequencies and complex amplitudes;
sm          a stationary SpectralMixture of as many trainable numbers.

The mean squared error over all pairs of 64 + 64 random places is minimised by Adam, as in the
paper, then that over a regular grid of 81 x 81 by L-BFGS. Reported is the error over a regular grid
of 100 x 100, also relative to the mean square of the target, and beside it the least error that any
stationary function has there. Starts are random: centres spread over the domain (for ifbm in
log t), windows as wide as their distance, frequencies and amplitudes random.

The pictures kernel_recovery.png and kernel_recovery_wigner.png are drawn from the records.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.results import significant
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Record, Records
from benchmarks._lib.tables import ranges, tabulated

KERNELS = ("hmk", "sm")
PHASES = ("adam_seconds", "lbfgs_seconds")
FITTED_GRID, TESTED_GRID = 81, 100
WIGNER_PLACES = (-0.9, 0.9)  # where the ridge is measured: not at the ends


@dataclass(frozen=True)
class Target:
    """A kernel to recover: its domain, and the paper's mean squared error."""

    low: float
    high: float
    paper: float
    hurst: float | None = None  # of fractional Brownian motion, whose domain is open below

    def grid(self, count: int) -> Array:
        """Equally spaced points of the domain, [count, 1]."""
        if self.hurst is None:
            return np.linspace(self.low, self.high, count)[:, None]
        return np.linspace(self.low, self.high, count + 1)[1:, None]

    def K(self, X: Any, X2: Any) -> Any:
        """The values of the kernel, [N, N2], at places [N, 1] and [N2, 1]."""
        s, t = tf.reshape(X, [-1, 1]), tf.reshape(X2, [1, -1])
        if self.hurst is not None:
            power = 2 * self.hurst
            return (s**-power + t**-power - tf.abs(1 / s - 1 / t) ** power) / 2
        w, w2 = (1 + 0.3 * tf.sin(np.pi * x) for x in (s, t))
        length, length2 = (0.4 + 0.1 * tf.cos(np.pi * x) for x in (s, t))
        total = length**2 + length2**2
        gibbs = tf.sqrt(2 * length * length2 / total) * tf.exp(-((s - t) ** 2) / total)
        return w * w2 * gibbs * tf.cos(2 * np.pi * (frequency(s) * s - frequency(t) * t))


TARGETS = {
    "gsm": Target(-1.0, 1.0, 0.0033),
    "ifbm_0.5": Target(0.1, 1.1, 0.0008, hurst=0.5),
    "ifbm_0.75": Target(0.1, 1.1, 0.0008, hurst=0.75),
}


def frequency(x: Any) -> Any:
    """mu(x) of the target "gsm", whose local frequency is the slope of mu(x) x."""
    return 2.0 + x


def slope(x: Any) -> Any:
    return 2.0 + 2.0 * x


class KernelRecovery(Benchmark, targets=TARGETS, kernels=KERNELS, seeds=range):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        P, Q = (3, 2) if short else (6, 3)
        for kernel in arguments.kernels or KERNELS:
            hmk = kernel == "hmk"
            # A component of the mixture has a centre, an envelope, an excess, Q frequencies and a
            # complex [Q, Q]; a peak of the stationary kernel has three numbers.
            peaks = round(P * (3 + Q + 2 * Q**2) / 3)
            for seed in arguments.seeds or range(1 if short else 5 if hmk else 2):
                for target in arguments.targets or TARGETS:
                    yield {
                        "target": target,
                        "kernel": kernel,
                        "num_components": P if hmk else peaks,
                        "num_frequencies": Q if hmk else 1,
                        "steps": 20 if short else 2_000 if hmk else 500,
                        "batch_size": 64,
                        "learning_rate": 0.02,  # a tenth of it at the end
                        "iterations": 5 if short else 300 if hmk else 100,
                        "seed": seed,
                    }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        return recover(configuration)

    def table(self, records: Records) -> str:
        """One row for each target and approximation: the best and the median start."""
        rows, ridge = [], ""
        for target in TARGETS:
            for kernel in KERNELS:
                starts = kernel_records(records, target, kernel)
                if not starts:
                    continue
                first = {**starts[0]["configuration"], **starts[0]["result"]}
                results = [record["result"] for record in starts]
                best, median = first["mse"], float(np.median([one["mse"] for one in results]))
                row = {**first, "size": "{num_components} x {num_frequencies}".format(**first)}
                if kernel == "hmk":
                    paper = TARGETS[target].paper
                    met = "yes, median too" if median <= paper else "yes, best only"
                    row |= {"paper": paper, "met": met if best <= paper else "no"}
                row |= {"median": median, "adam": min(one["mse_after_adam"] for one in results)}
                row |= {"relative_median": median / first["mean_square"]}
                row |= {"seconds": np.median([sum(map(one.get, PHASES)) for one in results])}
                row |= {"starts": ranges(record["configuration"]["seed"] for record in starts)}
                rows.append(row)
                if "ridge" in first:
                    ridge = (
                        "\n\nThe ridge of the best GSM's Wigner distribution is {to_slope:.2f} "
                        "from the slope of mu(x) x and {to_mu:.2f} from mu(x), in the mean over "
                        "|x| < 0.9."
                    ).format(**first["ridge"])
        table = tabulated(
            rows,
            "target; kernel; P x Q = size; numbers = num_parameters; MSE, best = mse .5f; "
            "median = median .5f; best of Adam alone = adam .5f; paper's MSE = paper; met; "
            "relative MSE, best = relative_mse .1e; median = relative_median .1e; "
            "least stationary MSE = stationary_mse .3f; seconds = seconds .0f; starts",
        )
        return (
            "Mean squared errors on a regular grid of 100 x 100. The paper's functions and scales "
            "are not known: the relative error is to the target's mean square.\n\n" + table + ridge
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """The paper's Figure 3 (kernels) and Figure 5 (the Wigner distribution of the GSM)."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(15.0, 2.9 * len(TARGETS)), layout="constrained")
        for row, (name, target) in zip(
            figure.subplots(len(TARGETS), 5), TARGETS.items(), strict=True
        ):
            places = target.grid(TESTED_GRID)
            truth = target.K(places, places).numpy()
            images = [(name, truth, truth)]
            for kernel in KERNELS:
                for record in kernel_records(records, name, kernel)[:1]:
                    values = np.asarray(recovered_kernel(record)(places))
                    title = f"{kernel} - truth, MSE {record['result']['mse']:.2g}"
                    images += [(f"{name}: {kernel}", values, truth), (title, *2 * [values - truth])]
            for axis in row[len(images) :]:
                axis.set_axis_off()
            for axis, (title, values, scale) in zip(row, images, strict=False):
                limit = float(np.max(np.abs(scale)))
                mesh = axis.pcolormesh(
                    *(places[:, 0], places[:, 0], values),
                    **{"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "rasterized": True},
                )
                figure.colorbar(mesh, ax=axis)
                axis.invert_yaxis()
                axis.set_title(title, fontsize=9)
        figure.savefig(folder / "kernel_recovery.png", dpi=60)
        for record in kernel_records(records, "gsm", "hmk")[:1]:
            figure = Figure(figsize=(5.0, 3.6), layout="constrained")
            axis, x = figure.subplots(), np.linspace(-1.0, 1.0, 121)
            w = np.linspace(0.0, 5.0, 121)
            density = recovered_kernel(record).wigner(x[:, None], w[:, None]).numpy().T
            limit = np.max(np.abs(density))
            axis.pcolormesh(x, w, density, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True)
            axis.set(xlabel="x", ylabel="frequency")
            axis.plot(x, slope(x), "k-", lw=1, label="slope of mu(x) x")
            axis.plot(x, frequency(x), "k--", lw=1, label="mu(x)")
            axis.legend(fontsize=8, loc="upper left")
            figure.savefig(folder / "kernel_recovery_wigner.png", dpi=80)


def build_kernel(configuration: Entries) -> Any:
    """An approximation at its random start."""
    target = TARGETS[configuration["target"]]
    generator = np.random.default_rng(configuration["seed"])
    P, Q = configuration["num_components"], configuration["num_frequencies"]
    width, tested = target.high - target.low, target.grid(TESTED_GRID)
    power = np.diag(target.K(tested, tested).numpy())

    def precision(smallest: float, largest: float, unit: float) -> float:
        """The s of exp(-2 pi^2 s t^2), a squared exponential of a lengthscale that is drawn."""
        lengthscale = unit * np.exp(generator.uniform(np.log(smallest), np.log(largest)))
        return float(1 / (4 * math.pi**2 * lengthscale**2))

    if configuration["kernel"] == "sm":
        return idm.kernels.SpectralMixture(
            [
                idm.kernels.SpectralComponent(
                    generator.uniform(0.0, 5.0, size=1),
                    variance=power.mean() / P,
                    lag=precision(0.03, 1.0, width),
                )
                for _ in range(P)
            ]
        )
    # A random centre in each of P cells; those of Brownian motion, which varies with 1 / t, are
    # equal in log t.
    places = (np.arange(P) + 0.5 + 0.3 * generator.uniform(-1.0, 1.0, P)) / P
    ends, ratio = np.arange(P + 1) / P, target.high / target.low
    if target.hurst is None:
        centres, widths = target.low + width * places, width * np.diff(ends)
    else:
        centres, widths = target.low * ratio**places, target.low * np.diff(ratio**ends)
    components = []
    for centre, spacing in zip(centres, widths, strict=True):
        root = generator.normal(size=(Q, Q)) + 1j * generator.normal(size=(Q, Q))
        amplitudes = root @ root.conj().T
        wanted = 0.5 * np.interp(centre, tested[:, 0], power)
        # The window of an input is exp(-pi^2 envelope y^2), of standard deviation `spacing`.
        envelope = 1 / (2 * math.pi**2 * spacing**2)
        excess = precision(0.3, 3.0, spacing)
        components.append(
            idm.kernels.HarmonizableComponent(
                generator.uniform(-0.5, 0.5, size=(Q, 1)) / spacing,
                amplitudes=amplitudes * wanted / np.trace(amplitudes).real,
                centre=centre,
                envelope=envelope,
                lag=excess + envelope / 4,
            )
        )
    return idm.kernels.HarmonizableMixture(components)


def recover(configuration: Entries) -> dict[str, Any]:
    """One start: Adam on random pairs, L-BFGS on a grid; errors on another grid."""
    target = TARGETS[configuration["target"]]
    tested, fitted = target.grid(TESTED_GRID), target.grid(FITTED_GRID)
    truth = target.K(tested, tested).numpy()
    mean_square = float(np.mean(truth**2))
    kernel = build_kernel(configuration)

    class Matching(
        gpflow.models.BayesianModel, gpflow.models.training_mixins.ExternalDataTrainingLossMixin
    ):
        """A model for `fit` whose data (x, x') are places, and whose loss is the mean squared error
        over all their pairs, relative to the target's mean square."""

        def __init__(self) -> None:
            super().__init__()
            self.kernel = kernel

        def maximum_log_likelihood_objective(self, data: Any) -> Any:
            difference = self.kernel.K(*data) - target.K(*data)
            return -tf.reduce_mean(tf.square(difference)) / mean_square

    def error() -> float:
        return float(np.mean((np.asarray(kernel(tested)) - truth) ** 2))

    model, steps = Matching(), configuration["steps"]
    generator = np.random.default_rng([configuration["seed"], 1])
    pairs = tf.data.Dataset.from_tensor_slices(
        tuple(generator.uniform(target.low, target.high, (2, steps, 64, 1)))
    )
    rate = tf_keras.optimizers.schedules.ExponentialDecay(
        configuration["learning_rate"], steps, 0.1
    )
    start, initial = time.perf_counter(), error()
    idm.fit(model, pairs, steps=steps, optimizer=tf_keras.optimizers.Adam(rate))
    after_adam, middle = error(), time.perf_counter()
    iterations, options = configuration["iterations"], {"ftol": 1e-14, "gtol": 1e-10}
    outcome = idm.fit(model, (fitted, fitted), steps=iterations, options=options)
    mse = error()
    result = {
        "mse": mse,
        "relative_mse": mse / mean_square,
        "mse_after_adam": after_adam,
        "initial_mse": initial,
        "mean_square": mean_square,
        "stationary_mse": least_stationary_error(truth),
        "num_parameters": sum(int(np.prod(v.shape)) for v in kernel.trainable_variables),
        "adam_seconds": round(middle - start, 1),
        "lbfgs_seconds": round(time.perf_counter() - middle, 1),
        "iterations": outcome.steps,
        "converged": outcome.converged,
        "parameters": {
            path: significant(parameter.numpy())
            for path, parameter in gpflow.utilities.parameter_dict(kernel).items()
        },
    }
    if target.hurst is None and configuration["kernel"] == "hmk":
        # How far the frequency at which the Wigner distribution is largest is from the two.
        x, w = np.linspace(*WIGNER_PLACES, 91), np.linspace(0.0, 6.0, 601)
        ridge = w[np.argmax(kernel.wigner(x[:, None], w[:, None]).numpy(), axis=1)]
        result["ridge"] = {
            "to_slope": float(np.mean(np.abs(ridge - slope(x)))),
            "to_mu": float(np.mean(np.abs(ridge - frequency(x)))),
        }
    return result


def least_stationary_error(matrix: Array) -> float:
    """The mean squared error of the best function of the lag on a regular grid: its values are the
    means along the diagonals. No stationary kernel has less."""
    count = len(matrix)
    diagonals = (np.diagonal(matrix, lag) for lag in range(1 - count, count))
    return sum(len(values) * float(np.var(values)) for values in diagonals) / count**2


def kernel_records(records: Records, target: str, kernel: str) -> list[Record]:
    """The records of a target and an approximation, those of least error first."""
    wanted = {"target": target, "kernel": kernel}.items()
    chosen = [record for record in records if wanted <= record["configuration"].items()]
    return sorted(chosen, key=lambda record: record["result"]["mse"])


def recovered_kernel(record: Record) -> Any:
    """The kernel of a record, as training left it."""
    kernel = build_kernel(record["configuration"])
    values = {path: np.array(v) for path, v in record["result"]["parameters"].items()}
    gpflow.utilities.multiple_assign(kernel, values)
    return kernel


if __name__ == "__main__":
    KernelRecovery.command()
