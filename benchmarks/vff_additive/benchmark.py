"""Additive variational Fourier features (A-VFF) beside VISH, on the UCI sets of VISH's Table 1.

Test MSE and NLPD on normalised data (lower is better). Methods, all trained by L-BFGS over every
parameter:
a_vff           a sum of Matern-3/2 kernels on one column each, IntervalFourierFeatures for each,
                30 frequencies per column, in gpflow's SGPR: q is optimal, and joint over the
                columns;
a_vff_mean_field
                the same in AdditiveSVGP, with an independent q for each column, at its optimum;
a_gpr           exact regression with the same sum of kernels, where there are at most 1,000 rows:
                the limit of a_vff with more frequencies and a longer interval;
vish_truncated  the paper's VISH, as in uci_vish; vish is that with the full prior;
step_times      no training: elbo + gradient at the size of power with Kuu kept as a diagonal plus
                low rank, against the same model with a dense Kuu, the two taking turns.

For the additive models each column is mapped to [0, 1] by the training rows; constant columns are
left out. The interval reaches beyond the data by --margin lengths of their range on either side.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._lib.data import Array, add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import markdown, mean_and_deviation, ranges, spread
from benchmarks._lib.timing import alternate, ratio, summarise
from benchmarks._lib.vish_table import SIZES, paper_verdict

METHODS = ("vish", "vish_truncated", "a_vff", "a_vff_mean_field", "a_gpr")
STEP_TIMES = "step_times"
DEFAULTS = {  # data set: (methods, splits)
    "yacht": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "energy": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "concrete": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "kin8nm": (("vish_truncated", "a_vff"), 1),
    "power": (("vish_truncated", "a_vff"), 1),
}
MAX_EXACT_ROWS = 1_000
FREQUENCIES = 30  # per column, as in the paper
MARGIN = 1.0  # lengthscales of up to 0.4 lose 0.4% of their variance at the ends of the data
LENGTHSCALE = 0.3  # initial: about the standard deviation of uniform inputs in [0, 1]
STEP_ROWS, STEP_COLUMNS = 8_611, 4  # the training rows of power
STEP_FREQUENCIES = (30, 120)


class VffAdditive(Benchmark):
    __doc__ = __doc__
    name = "vff_additive"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(list(SIZES), "data sets"), default=None)
        parser.add_argument("--methods", type=names((*METHODS, STEP_TIMES), "methods"))
        parser.add_argument("--splits", type=indices, default=None, help="such as 0-4")
        parser.add_argument("--frequencies", type=int, default=FREQUENCIES, help="per column")
        parser.add_argument("--margin", type=float, default=MARGIN, help="beyond the data")
        parser.add_argument("--max-iterations", type=int, default=None, help="of L-BFGS")
        parser.add_argument("--rounds", type=int, default=None, help="of step_times, default 5")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for dataset in arguments.datasets or (["yacht"] if short else list(SIZES)):
            methods, num_splits = DEFAULTS[dataset]
            for split in arguments.splits or range(1 if short else num_splits):
                for method in arguments.methods or methods:
                    if method != STEP_TIMES:
                        yield self._training(dataset, method, split, arguments)
        everything = not arguments.methods and not arguments.datasets
        if everything and not short:
            yield self._training("concrete", "a_vff_mean_field", 0, arguments)
        if everything or STEP_TIMES in (arguments.methods or []):
            for frequencies in [3] if short else STEP_FREQUENCIES:
                for model, q, whiten in itertools.product(
                    ("additive", "joint"), ("full", "diagonal"), (True, False)
                ):
                    yield {
                        "method": STEP_TIMES,
                        "frequencies": frequencies,
                        "model": model,
                        "q": q,
                        "whiten": whiten,
                        "rows": 500 if short else STEP_ROWS,
                        "columns": STEP_COLUMNS,
                        "rounds": arguments.rounds or (3 if short else 5),
                        "seed": 0,
                    }

    def _training(
        self, dataset: str, method: str, split: int, arguments: argparse.Namespace
    ) -> Configuration:
        has_features = method.startswith("a_vff")
        return {
            "dataset": dataset,
            "method": method,
            "frequencies": arguments.frequencies if has_features else None,
            "margin": arguments.margin if has_features else None,
            "split": split,
            "seed": split,
            "max_iterations": arguments.max_iterations or (30 if arguments.short else 2_000),
            "source": source_of(arguments.data_dir),
        }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        if configuration["method"] == STEP_TIMES:
            return time_steps(configuration)
        table = load_table(configuration["dataset"], arguments.data_dir)
        return train(configuration, normalise(take_split(table, configuration["split"])))

    def table(self, records: Sequence[Record]) -> str:
        trainings = [r for r in records if r["configuration"]["method"] != STEP_TIMES]
        steps = [r for r in records if r["configuration"]["method"] == STEP_TIMES]
        tables = [(accuracy_table, trainings), (step_table, steps)]
        return "\n\n".join(table(found) for table, found in tables if found)


def train(configuration: Configuration, split: NormalisedSplit) -> dict[str, Any]:
    """Build, train and judge one model."""
    from benchmarks._lib.optimal_q import OptimalQ
    from benchmarks._lib.regression import fit_by_lbfgs, test_errors, vish_model

    method, dataset = configuration["method"], configuration["dataset"]
    start = time.perf_counter()
    if method.startswith("vish"):
        data = (split.X_train, split.Y_train)
        model: Any = vish_model(data, *SIZES[dataset], truncated=method == "vish_truncated")
    else:
        split = unit_inputs(split)
        model = additive_model(method, split, configuration["frequencies"], configuration["margin"])
    mean_field = method == "a_vff_mean_field"
    trained = OptimalQ(model, (split.X_train, split.Y_train)) if mean_field else model
    fit = fit_by_lbfgs(trained, None, configuration["max_iterations"])
    if mean_field:
        trained.assign_q()
    seconds = time.perf_counter() - start
    iv = getattr(model, "inducing_variable", None)
    return {
        **test_errors(model, split),
        **fit,
        **({} if method.startswith("vish") else additive_parameters(model)),
        "num_train": len(split.X_train),
        "num_columns": split.X_train.shape[1],
        "num_inducing": None if iv is None else int(iv.num_inducing),
        "fit_seconds": round(seconds, 2),
    }


def unit_inputs(split: NormalisedSplit) -> NormalisedSplit:
    """Columns mapped to [0, 1] by the training rows; those that are constant there are left out."""
    lower, upper = split.X_train.min(axis=0), split.X_train.max(axis=0)
    varying = upper > lower
    lower, length = lower[varying], (upper - lower)[varying]
    return replace(
        split,
        X_train=(split.X_train[:, varying] - lower) / length,
        X_test=(split.X_test[:, varying] - lower) / length,
    )


def additive_kernel(input_dim: int) -> Any:
    """A Matern-3/2 kernel for each column; the variances add up to one."""
    import gpflow

    return gpflow.kernels.Sum(
        [
            gpflow.kernels.Matern32(1.0 / input_dim, LENGTHSCALE, active_dims=[column])
            for column in range(input_dim)
        ]
    )


def fourier_features(X: Array, frequencies: int, margin: float) -> Any:
    """Features for each column of X."""
    import interdomain as idm

    return idm.inducing_variables.SumInducingVariables(
        [
            idm.inducing_variables.IntervalFourierFeatures.from_data(
                column, frequencies, margin=margin
            )
            for column in X.T
        ]
    )


def additive_model(
    method: str, split: NormalisedSplit, frequencies: int | None, margin: float | None
) -> Any:
    """One additive model at its initial parameters, on inputs in [0, 1]."""
    import gpflow

    import interdomain as idm

    data = (split.X_train, split.Y_train)
    num_rows, input_dim = split.X_train.shape
    kernel = additive_kernel(input_dim)
    if method == "a_gpr":
        if num_rows > MAX_EXACT_ROWS:
            raise RuntimeError(f"{num_rows} rows are too many for exact regression")
        return gpflow.models.GPR(data, kernel, noise_variance=0.1)
    if frequencies is None or margin is None:
        raise ValueError(f"{method} needs frequencies and a margin")
    features = fourier_features(split.X_train, frequencies, margin)
    if method == "a_vff":
        return gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
    return idm.models.AdditiveSVGP(kernel, likelihood, features, num_data=num_rows)


def additive_parameters(model: Any) -> dict[str, Any]:
    """What training has made of the kernels and the noise."""
    return {
        "lengthscales": [float(k.lengthscales.numpy()) for k in model.kernel.kernels],
        "variances": [float(k.variance.numpy()) for k in model.kernel.kernels],
        "noise_variance": float(model.likelihood.variance.numpy()),
    }


def time_steps(configuration: Configuration) -> dict[str, Any]:
    """Seconds of a step with the structured Kuu and with a dense one, and how far their bounds are
    apart: for unwhitened variables, as the two roots of Kuu are not the same."""
    work = {key: value for key, value in configuration.items() if key not in ("method", "rounds")}
    sides = {side: step(side, **work) for side in ("structured", "dense")}
    bounds = {side: float(call()[0].numpy()) for side, call in sides.items()}
    samples = alternate(sides, rounds=configuration["rounds"], warm_up=1, description="rounds")
    difference = abs(bounds["dense"] / bounds["structured"] - 1)
    return {
        "seconds": {side: summarise(values) for side, values in samples.items()},
        "ratio": ratio(samples, "dense", "structured"),
        "difference": None if configuration["whiten"] else difference,
    }


def step(
    side: str,
    *,
    model: str,
    q: str,
    whiten: bool,
    frequencies: int,
    rows: int,
    columns: int,
    seed: int,
) -> Callable[[], Any]:
    """The traced elbo + gradient of one side, on random rows."""
    import gpflow
    import tensorflow as tf

    import interdomain as idm
    from benchmarks._lib.graphs import elbo_and_gradient
    from benchmarks.vff_additive.dense_kuu import DenseFeatures, DenseSum

    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(rows, columns))
    Y = generator.normal(size=(rows, 1))
    additive = model == "additive"
    block = idm.inducing_variables.IntervalFourierFeatures
    whole = idm.inducing_variables.SumInducingVariables
    if side == "dense":
        # What is factorised: each block of the additive model, the whole matrix of the joint one.
        block, whole = (DenseFeatures, whole) if additive else (block, DenseSum)
    features = whole([block(-MARGIN, 1 + MARGIN, frequencies) for _ in range(columns)])
    make = idm.models.AdditiveSVGP if additive else gpflow.models.SVGP
    trained = make(
        additive_kernel(columns),
        gpflow.likelihoods.Gaussian(variance=0.1),
        features,
        q_diag=q == "diagonal",
        whiten=whiten,
        num_data=rows,
    )
    return elbo_and_gradient(trained, (tf.constant(X), tf.constant(Y)))


def accuracy_table(records: Sequence[Record]) -> str:
    """One row per data set and method; our figures are means over the finished splits."""
    keys = ("dataset", "method", "frequencies", "margin", "source", "max_iterations")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        group = tuple(record["configuration"][key] for key in keys)
        groups.setdefault(group, []).append(record)
    rows = []
    for group in sorted(groups, key=_position):
        dataset, method, frequencies, margin, source, max_iterations = group
        found = groups[group]
        results = [record["result"] for record in found]
        row = [dataset, results[0]["num_train"], results[0]["num_columns"], method]
        row += [results[0]["num_inducing"]]
        row += ["" if frequencies is None else f"{frequencies}, {margin:g}"]
        for metric in ("mse", "nlpd"):
            values = [result[metric] for result in results]
            if any(value is None for value in values):
                row += ["not finite", "", "no, worse"]
                continue
            text, verdict = paper_verdict(dataset, method, metric, float(np.mean(values)))
            row += [mean_and_deviation(values), text, verdict]
        splits = ranges(record["configuration"]["split"] for record in found)
        unfinished = sum(not result["converged"] for result in results)
        row += [
            f"{np.mean([result['objective'] for result in results]):.1f}",
            f"{splits} ({'stored' if source == 'files' else 'seeded'})",
            f"{np.mean([result['fit_seconds'] for result in results]):.1f}",
            f"{unfinished} of {len(found)} at {max_iterations}",
        ]
        rows.append(row)
    headers = (
        *("data", "N", "D", "method", "M", "frequencies, margin", "MSE", "paper", "within 2 sd"),
        *("NLPD", "paper", "within 2 sd", "bound", "splits", "fit s", "not converged"),
    )
    return (
        "Test MSE and NLPD on normalised data, lower is better; N is the number of training rows.\n"
        "Signs of the paper's NLPD are inferred (see vish_table.py). Bound: the objective at the "
        "end; bounds of the additive\nmodels are comparable, a_gpr's is the evidence itself.\n\n"
        + markdown(headers, rows)
    )


def step_table(records: Sequence[Record]) -> str:
    """One row per size, model and q."""
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        rows.append(
            (
                run["frequencies"],
                run["columns"] * (2 * run["frequencies"] + 1),
                {"additive": "AdditiveSVGP", "joint": "SVGP"}[run["model"]],
                run["q"],
                "yes" if run["whiten"] else "no",
                spread(result["seconds"]["structured"]),
                spread(result["seconds"]["dense"]),
                spread(result["ratio"]),
                "" if result["difference"] is None else f"{result['difference']:.0e}",
            )
        )
    run = records[0]["configuration"]
    headers = ("frequencies", "M", "model", "q", "whitened", "structured s", "dense s")
    return (
        f"elbo + gradient, {run['rows']} rows of {run['columns']} columns: median "
        "[quartiles]; a dense Kuu is one matrix for\neach block of AdditiveSVGP, and one matrix in "
        "all for SVGP. The last column: how far the bounds differ.\n\n"
        + markdown((*headers, "dense / structured", "difference"), rows)
    )


def _position(group: tuple[Any, ...]) -> tuple[Any, ...]:
    dataset, method, frequencies, margin, source, max_iterations = group
    order = (list(SIZES).index(dataset), METHODS.index(method), frequencies or 0, margin or 0.0)
    return (*order, source, max_iterations)
