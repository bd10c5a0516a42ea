"""Known non-stationary kernels recovered by harmonizable mixtures: Shen, Heinonen and Kaski 2019,
section 5.1 and Figures 3 and 5.

gsm         a generalized spectral mixture of one part on [-1, 1], with
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

import argparse
import functools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.tables import markdown, ranges


@dataclass(frozen=True)
class Target:
    """A kernel to recover: where, and the paper's mean squared error."""

    low: float
    high: float
    paper: float
    hurst: float | None = None  # of fractional Brownian motion, whose domain is open below

    def grid(self, count: int) -> Array:
        """Places at equal distances, [count, 1]."""
        if self.hurst is None:
            return np.linspace(self.low, self.high, count)[:, None]
        return np.linspace(self.low, self.high, count + 1)[1:, None]


TARGETS = {
    "gsm": Target(-1.0, 1.0, 0.0033),
    "ifbm_0.5": Target(0.1, 1.1, 0.0008, hurst=0.5),
    "ifbm_0.75": Target(0.1, 1.1, 0.0008, hurst=0.75),
}
KERNELS = ("hmk", "sm")
FITTED_GRID, TESTED_GRID = 81, 100
WIGNER_PLACES = (-0.9, 0.9)  # where the ridge is measured: not at the ends


class KernelRecovery(Benchmark):
    __doc__ = __doc__
    name = "kernel_recovery"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--targets", type=names(tuple(TARGETS), "targets"), default=None)
        parser.add_argument("--kernels", type=names(KERNELS, "kernels"), default=KERNELS)
        parser.add_argument("--num-components", type=int, default=None, help="P, default 6")
        parser.add_argument("--num-frequencies", type=int, default=None, help="Q, default 3")
        parser.add_argument("--steps", type=int, default=None, help="of Adam, default 2000")
        parser.add_argument("--iterations", type=int, default=None, help="of L-BFGS, default 300")
        parser.add_argument("--seeds", type=indices, default=None, help="default 0-4; sm: 0-1")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        P = arguments.num_components or (3 if short else 6)
        Q = arguments.num_frequencies or (2 if short else 3)
        for kernel in arguments.kernels:
            stationary = kernel == "sm"
            starts = 1 if short else 2 if stationary else 5
            for seed in arguments.seeds or range(starts):
                for target in arguments.targets or TARGETS:
                    yield {
                        "target": target,
                        "kernel": kernel,
                        "num_components": stationary_size(P, Q) if stationary else P,
                        "num_frequencies": 1 if stationary else Q,
                        "steps": arguments.steps or (20 if short else 500 if stationary else 2_000),
                        "batch_size": 64,
                        "learning_rate": 0.02,  # a tenth of it at the end
                        "iterations": arguments.iterations
                        or (5 if short else 100 if stationary else 300),
                        "seed": seed,
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return recover(configuration)

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw(folder, records)


def stationary_size(num_components: int, num_frequencies: int) -> int:
    """How many peaks have as many trainable numbers as a harmonizable mixture: centre, envelope,
    excess, Q frequencies and a complex [Q, Q] for each component against three for each peak."""
    Q = num_frequencies
    return round(num_components * (3 + Q + 2 * Q**2) / 3)


def target_kernel(name: str) -> Any:
    """The kernel to recover."""
    import interdomain as idm

    hurst = TARGETS[name].hurst
    if hurst is None:
        return idm.kernels.GeneralizedSpectralMixture(gsm_amplitude, gsm_lengthscale, gsm_frequency)
    return idm.kernels.TimeInvertedFractionalBrownianMotion(hurst)


def gsm_amplitude(x: Any) -> Any:
    """w(x)."""
    import tensorflow as tf

    return 1.0 + 0.3 * tf.sin(math.pi * x)


def gsm_lengthscale(x: Any) -> Any:
    """l(x)."""
    import tensorflow as tf

    return 0.4 + 0.1 * tf.cos(math.pi * x)


def gsm_frequency(x: Any) -> Any:
    """mu(x)."""
    return 2.0 + x


def gsm_slope(x: Any) -> Any:
    """The derivative of mu(x) x."""
    return 2.0 + 2.0 * x


def build_kernel(configuration: Configuration) -> Any:
    """An approximation at its random start."""
    import interdomain as idm

    target = TARGETS[configuration["target"]]
    generator = np.random.default_rng(configuration["seed"])
    P, Q = configuration["num_components"], configuration["num_frequencies"]
    width = target.high - target.low
    power = np.diag(np.asarray(target_kernel(configuration["target"])(target.grid(TESTED_GRID))))
    if configuration["kernel"] == "sm":
        return idm.kernels.SpectralMixture(
            [
                idm.kernels.SpectralComponent(
                    generator.uniform(0.0, 5.0, size=1),
                    variance=power.mean() / P,
                    lag=precision_of_lag(width * log_uniform(generator, 0.03, 1.0)),
                )
                for _ in range(P)
            ]
        )
    components = []
    for centre, spacing in zip(*spread_centres(target, P, generator), strict=True):
        root = generator.normal(size=(Q, Q)) + 1j * generator.normal(size=(Q, Q))
        amplitudes = root @ root.conj().T
        wanted = 0.5 * np.interp(centre, target.grid(TESTED_GRID)[:, 0], power)
        # The window of an input is exp(-pi^2 envelope y^2), of standard deviation `spacing`.
        envelope = 1 / (2 * math.pi**2 * spacing**2)
        excess = precision_of_lag(spacing * log_uniform(generator, 0.3, 3.0))
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


def spread_centres(
    target: Target, count: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """One random centre in each of `count` cells, and the widths of the cells; for fractional
    Brownian motion, which varies with 1 / t, the cells are equal in log t."""
    places = (np.arange(count) + 0.5 + 0.3 * generator.uniform(-1.0, 1.0, count)) / count
    ends = np.arange(count + 1) / count
    if target.hurst is None:
        return target.low + (target.high - target.low) * places, np.full(
            count, (target.high - target.low) / count
        )
    ratio = target.high / target.low
    return target.low * ratio**places, target.low * np.diff(ratio**ends)


def precision_of_lag(lengthscale: float) -> float:
    """The s of exp(-2 pi^2 s t^2) that is a squared exponential of this lengthscale."""
    return 1 / (4 * math.pi**2 * lengthscale**2)


def log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))


def recover(configuration: Configuration) -> dict[str, Any]:
    """One start: Adam on random pairs, L-BFGS on a grid; errors on another grid."""
    import gpflow
    import tensorflow as tf
    from gpflow.keras import tf_keras

    import interdomain as idm

    target = TARGETS[configuration["target"]]
    tested = target.grid(TESTED_GRID)
    truth = np.asarray(target_kernel(configuration["target"])(tested))
    mean_square = float(np.mean(truth**2))
    kernel = build_kernel(configuration)
    model = matching_model(kernel, target_kernel(configuration["target"]), mean_square)

    def error() -> float:
        return float(np.mean((np.asarray(kernel(tested)) - truth) ** 2))

    steps = configuration["steps"]
    generator = np.random.default_rng([configuration["seed"], 1])
    size = (2, steps, configuration["batch_size"], 1)
    pairs = tf.data.Dataset.from_tensor_slices(
        tuple(generator.uniform(target.low, target.high, size))
    )
    rate = tf_keras.optimizers.schedules.ExponentialDecay(
        configuration["learning_rate"], steps, 0.1
    )
    start, initial = time.perf_counter(), error()
    idm.training.fit(model, pairs, steps=steps, optimizer=tf_keras.optimizers.Adam(rate))
    after_adam, middle = error(), time.perf_counter()
    fitted = target.grid(FITTED_GRID)
    outcome = idm.training.fit(
        model,
        (fitted, fitted),
        method="l-bfgs",
        steps=configuration["iterations"],
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
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
        result["ridge"] = ridge_distances(kernel)
    return result


def matching_model(kernel: Any, target: Any, mean_square: float) -> Any:
    """A model for `fit` whose data (x, x') are places, and whose loss is the mean squared error
    over all their pairs, relative to the target's mean square."""
    import gpflow
    import tensorflow as tf

    class Matching(
        gpflow.models.BayesianModel, gpflow.models.training_mixins.ExternalDataTrainingLossMixin
    ):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = kernel

        def maximum_log_likelihood_objective(self, data: Any) -> Any:
            difference = self.kernel.K(*data) - target.K(*data)
            return -tf.reduce_mean(tf.square(difference)) / mean_square

    return Matching()


def least_stationary_error(matrix: Array) -> float:
    """The mean squared error of the best function of the lag on a regular grid: its values are the
    means along the diagonals. No stationary kernel has less."""
    count = len(matrix)
    diagonals = (np.diagonal(matrix, lag) for lag in range(1 - count, count))
    return sum(len(values) * float(np.var(values)) for values in diagonals) / count**2


def ridge_distances(kernel: Any) -> dict[str, float]:
    """How far the ridge of the Wigner distribution (the frequency at which it is largest) is from
    mu(x) and from the slope of mu(x) x, in the mean over places."""
    x, w = np.linspace(*WIGNER_PLACES, 91), np.linspace(0.0, 6.0, 601)
    ridge = w[np.argmax(kernel.wigner(x[:, None], w[:, None]).numpy(), axis=1)]
    return {
        "to_slope": float(np.mean(np.abs(ridge - gsm_slope(x)))),
        "to_mu": float(np.mean(np.abs(ridge - gsm_frequency(x)))),
    }


def significant(values: Any) -> Any:
    """Nested lists with nine digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.9g}")
    return [significant(entry) for entry in values]


def recovered_kernel(record: Record) -> Any:
    """The kernel of a record, as training left it."""
    import gpflow

    kernel = build_kernel(record["configuration"])
    values = {path: np.array(v) for path, v in record["result"]["parameters"].items()}
    gpflow.utilities.multiple_assign(kernel, values)
    return kernel


def table_of(records: Sequence[Record]) -> str:
    """One row for each target and approximation: the best and the median start."""
    rows = []
    for key, found in _grouped(records).items():
        target = TARGETS[key[0]]
        results = [record["result"] for record in found]
        errors = [result["mse"] for result in results]
        best = min(errors)
        rows.append(
            (
                *key[:2],
                f"{key[2]} x {key[3]}",
                results[0]["num_parameters"],
                f"{best:.5f}",
                f"{np.median(errors):.5f}",
                f"{min(result['mse_after_adam'] for result in results):.5f}",
                target.paper if key[1] == "hmk" else None,
                _verdict(best, float(np.median(errors)), target.paper) if key[1] == "hmk" else None,
                f"{best / results[0]['mean_square']:.1e}",
                f"{np.median(errors) / results[0]['mean_square']:.1e}",
                f"{results[0]['stationary_mse']:.3f}",
                f"{np.median([r['adam_seconds'] + r['lbfgs_seconds'] for r in results]):.0f}",
                ranges(record["configuration"]["seed"] for record in found),
            )
        )
    headers = (
        *("target", "kernel", "P x Q", "numbers", "MSE, best", "median", "best of Adam alone"),
        *("paper's MSE", "met", "relative MSE, best", "median", "least stationary MSE"),
        *("seconds", "starts"),
    )
    text = (
        "Mean squared errors on a regular grid of 100 x 100. The paper's functions and scales are "
        "not known: the relative error is to the target's mean square.\n\n"
        + markdown(headers, rows)
    )
    ridges = [record["result"]["ridge"] for record in _best(records, "gsm", "hmk")]
    if ridges:
        text += (
            "\n\nThe ridge of the best GSM's Wigner distribution is {to_slope:.2f} from the slope "
            "of mu(x) x and {to_mu:.2f} from mu(x), in the mean over |x| < 0.9."
        ).format(**ridges[0])
    return text


def draw(folder: Path, records: Sequence[Record]) -> None:
    """The paper's Figure 3 (kernels) and Figure 5 (the Wigner distribution of the GSM)."""
    from matplotlib.figure import Figure

    targets = [target for target in TARGETS if _best(records, target, "hmk")]
    if not targets:
        return
    figure = Figure(figsize=(15.0, 2.9 * len(targets)), layout="constrained")
    axes = figure.subplots(len(targets), 5, squeeze=False)
    for row, target in zip(axes, targets, strict=True):
        _draw_target(row, target, records)
    figure.savefig(folder / "kernel_recovery.png", dpi=60)
    for record in _best(records, "gsm", "hmk"):
        figure = Figure(figsize=(5.0, 3.6), layout="constrained")
        _draw_wigner(figure.subplots(), recovered_kernel(record))
        figure.savefig(folder / "kernel_recovery_wigner.png", dpi=80)


def _draw_target(row: Sequence[Any], target: str, records: Sequence[Record]) -> None:
    places = TARGETS[target].grid(TESTED_GRID)
    truth = np.asarray(target_kernel(target)(places))
    limit = float(np.max(np.abs(truth)))
    image = functools.partial(_image, places=places[:, 0])
    image(row[0], truth, limit=limit, title=target)
    for first, kernel in ((1, "hmk"), (3, "sm")):
        found = _best(records, target, kernel)
        if not found:
            row[first].set_axis_off()
            row[first + 1].set_axis_off()
            continue
        values = np.asarray(recovered_kernel(found[0])(places))
        image(row[first], values, limit=limit, title=f"{target}: {kernel}")
        mse, difference = found[0]["result"]["mse"], values - truth
        image(
            row[first + 1],
            difference,
            limit=float(np.max(np.abs(difference))),
            title=f"{kernel} - truth, MSE {mse:.2g}",
        )


def _image(axis: Any, values: Array, *, places: Array, limit: float, title: str) -> None:
    mesh = axis.pcolormesh(
        places, places, values, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True
    )
    axis.figure.colorbar(mesh, ax=axis)
    axis.invert_yaxis()
    axis.set_title(title, fontsize=9)


def _draw_wigner(axis: Any, kernel: Any) -> None:
    import interdomain as idm

    x = np.linspace(-1.0, 1.0, 121)
    idm.plotting.wigner(kernel, x, np.linspace(0.0, 5.0, 121), axis)
    axis.plot(x, gsm_slope(x), "k-", lw=1, label="slope of mu(x) x")
    axis.plot(x, gsm_frequency(x), "k--", lw=1, label="mu(x)")
    axis.legend(fontsize=8, loc="upper left")


def _verdict(best: float, median: float, paper: float) -> str:
    if median <= paper:
        return "yes, median too"
    return "yes, best only" if best <= paper else "no"


def _grouped(
    records: Sequence[Record],
) -> Mapping[tuple[str, str, int, int, int, int], list[Record]]:
    """By target, kernel, P, Q, steps and iterations, in a fixed order."""
    groups: dict[tuple[str, str, int, int, int, int], list[Record]] = {}
    for record in records:
        run = record["configuration"]
        key = (
            *(run["target"], run["kernel"], run["num_components"], run["num_frequencies"]),
            *(run["steps"], run["iterations"]),
        )
        groups.setdefault(key, []).append(record)
    order = tuple(TARGETS)
    return {
        key: groups[key]
        for key in sorted(groups, key=lambda k: (order.index(k[0]), KERNELS.index(k[1]), k[2:]))
    }


def _best(records: Sequence[Record], target: str, kernel: str) -> list[Record]:
    """The record of least error, in a list; none if there is none."""
    found = [
        record
        for record in records
        if (record["configuration"]["target"], record["configuration"]["kernel"])
        == (target, kernel)
    ]
    return sorted(found, key=lambda record: record["result"]["mse"])[:1]
