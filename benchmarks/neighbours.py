"""Features, neighbours and both, beside GPBoost, trees and linear interpolation.

Test RMSE, NLPD and coverage of 90% bands, and CPU seconds of everything from the rows in memory to
the predictions of all test rows; imports do not count. Each model runs in a process of its own.
Columns and targets are standardised. kin8nm, power, protein, keggdirected: first split;
beijing_pm25: 100,000 rows drawn from those for training; terrain: the mountain range that ships
with matplotlib, the split of `terrain`; made_N: N made-up rows of two
columns, a wave, a Matern-1/2-like sum of 2,000 random waves, and noise of 0.05.
folds_*: the protocol of GPBoost's full-scale Vecchia paper, five shuffled folds of seed 10, columns
scaled to [0, 1], which ours standardises: three of these tables, the power that Tetouan uses
(52,416 rows, 5 columns), and December's precipitation (its logarithm) at 54,502 places of the
globe, which ours knows by great-circle distance, others by coordinates.
features      1,080 waves of a box (two columns), or all harmonics up to the highest degree at which
              they are no more than 500; `fit`
neighbours    VecchiaSGPR without features, a Matern-3/2 with a lengthscale for each column, 30
              neighbours; 20 of two columns
as_many       the same, with as many neighbours in predictions; they have four times as many else
both          VecchiaSGPR with these features; `fit` tries each part alone, too
gpboost_M     GPBoost's Vecchia approximation with M neighbours, the same kernel, its defaults
gpboost_vif   its full-scale approximation: 200 inducing points, 30 neighbours
gpytorch      GPyTorch's NNVariationalStrategy, the same kernel, 30 neighbours: mean and variance of
              the function at each row; Adam 0.01, batches of 256, until 200 CPU seconds; single
              precision, its default
trees         scikit-learn's gradient boosting; the variance is that of the residuals of a tenth of
              the rows
linear        SciPy's linear interpolation; the variance is that of the errors at 2,000 rows
nearest_four  scikit-learn's mean of the nearest four rows by inverse distances; the same variance
GPBoost and GPyTorch run if they are installed (pip install gpboost gpytorch "pandas<3"). GPBoost's
runs that are stored had OMP_NUM_THREADS=1, but for gpboost_20 of kin8nm, beside other work.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, for_a_process, source_of
from benchmarks._lib.elevations import globe, mountains
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.mixed_tables import of_fold, standardised
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows, linear, nearest_four, waves
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.table_models import boosted
from benchmarks._lib.tables import mean_and_deviation, tabulated

TABLES = ("kin8nm", "power", "protein", "keggdirected", "beijing_pm25")
MADE = ("made_10000", "made_100000", "made_1000000")
GLOBE = "folds_precipitation"
FOLDS = (*(f"folds_{name}" for name in ("kin8nm", "power", "protein", "tetouan")), GLOBE)
DATA = ("terrain", *TABLES, *MADE, *FOLDS)
TWO_COLUMNS = ("terrain", *MADE)
OF_FOLDS = ("features", "neighbours", "both", "gpboost_20", "trees")
FEATURES, WAVES = 500, 1_080
MOST_ROWS = 100_000  # of a table
MOST_SECONDS = 900.0  # of a model
GPYTORCH_SECONDS = 200.0
ERRORS = ("cpu_seconds", "rmse", "nll", "coverage")
LIBRARIES = {
    "gpboost": "gpboost",
    "gpytorch": "gpytorch",
    "trees": "sklearn.ensemble",
    "linear": "scipy.interpolate",
    "nearest": "sklearn.neighbors",
}
"""What a method imports, if not this library; imports are not on the clock."""
Predictions = tuple[Array, Array]


def library_of(method: str) -> str:
    return LIBRARIES.get(method.partition("_")[0], "interdomain")


def first_lengthscale(num_columns: int) -> float:
    return 0.1 if num_columns == 2 else num_columns**0.5


def means(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the table has of several folds."""
    values = {name: [result[name] for result in results] for name in ERRORS}
    decimals = {"cpu_seconds": 0, "rmse": 4, "nll": 3}
    shown = {name: mean_and_deviation(values[name], few) for name, few in decimals.items()}
    kept = ", ".join(sorted({result.get("parts", "") for result in results}))
    folds, coverage = str(len(results)), f"{np.mean(values['coverage']):.1%}"
    return {**shown, "folds": folds, "coverage": coverage, "parts": kept}


def rows_of(data: str, data_dir: str | None, fold: int | None) -> tuple[Rows, Rows]:
    """Rows to train with and test rows, without columns that are constant."""
    if data == "terrain":
        return mountains(1, 0)
    if data in MADE:
        return made(int(data.removeprefix("made_")))
    if fold is not None:
        return of_fold(data.removeprefix("folds_"), data_dir, fold)
    (X, Y), (X_test, Y_test) = standardised(data, data_dir)
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    varies = X[chosen].std(axis=0) > 0
    return (X[chosen][:, varies], Y[chosen]), (X_test[:10_000, varies], Y_test[:10_000])


def made(number: int) -> tuple[Rows, Rows]:
    """Rows of a smooth and a rough function, and 10,000 to test."""
    rng = np.random.default_rng(0)
    frequencies, phases = rng.standard_cauchy((2, 2_000)) * 10, rng.uniform(0, 2 * np.pi, 2_000)
    X = rng.uniform(-1, 1, (number + 10_000, 2))
    parts = np.array_split(X, max(1, len(X) // 10_000))
    rough = [np.cos(part @ frequencies + phases).mean(axis=1) * np.sqrt(2_000) for part in parts]
    f = 2 * np.sin(2 * X[:, 0] + X[:, 1]) + 0.5 * np.concatenate(rough)
    Y = (f + 0.05 * rng.normal(size=len(X)))[:, None]
    return (X[:number], Y[:number]), (X[number:], Y[number:])


def measured(
    *, data: str, method: str, rows: int | None, data_dir: str | None, fold: int | None = None
) -> dict[str, Any]:
    """One model, in a process of its own."""
    (X, Y), (X_test, Y_test) = rows_of(data, data_dir, fold)
    X, Y = X[:rows], Y[:rows]
    if fold is not None and data != GLOBE and library_of(method) == "interdomain":
        # Its first lengthscales, and harmonics, are for such columns; the other tables have them.
        middle, scale = X.mean(axis=0), X.std(axis=0)
        X, X_test = (X - middle) / scale, (X_test - middle) / scale
    importlib.import_module(library_of(method))
    used, started = time.process_time(), time.perf_counter()
    mean, variance, *more = METHODS[method](X, Y, X_test)
    cpu, seconds = time.process_time() - used, time.perf_counter() - started
    mean, variance = mean.reshape(Y_test.shape), variance.reshape(Y_test.shape)
    return {
        "rows": len(X),
        "cpu_seconds": cpu,
        "seconds": seconds,
        **gaussian_errors(Y_test, mean, variance),
        "coverage": float(np.mean(np.abs(Y_test - mean) < 1.6449 * np.sqrt(variance))),
        "peak_bytes": peak_of_process(),
        **(more[0] if more else {}),
    }


def ours(
    X: Array, Y: Array, X_test: Array, *, features: bool, near: bool, as_many: bool = False
) -> Any:
    import gpflow

    import interdomain as idm

    size, parts = X.shape[1], []
    on_globe = bool(np.ptp(X) > 180)  # degrees: all other columns are scaled
    if features:
        few = min(WAVES, len(X) // 2)
        if on_globe:
            kernel, some = globe(int(few**0.5) - 1)
        else:
            kernel, some = waves(np.r_[X, X_test], few, 0.2, 2.0) if size == 2 else harmonics(size)
        parts = [idm.kernels.FiniteRank(kernel, some), some]
    if near:
        first = 0.1 if on_globe else np.full(size, first_lengthscale(size))
        local = gpflow.kernels.Matern32(lengthscales=first)
        number = 20 if size == 2 else 30
        model: Any = idm.models.VecchiaSGPR(
            (X, Y),
            *parts,
            local_kernel=local,
            num_neighbours=number,
            num_prediction_neighbours=number if as_many else None,
            local_inputs="degrees" if on_globe else "euclidean",
            noise_variance=0.1,
        )
    else:
        model = idm.models.StructuredSGPR((X, Y), *parts, noise_variance=0.1)
    result = idm.fit(model)
    mean, variance = idm.predict_in_batches(model, X_test, method="predict_y")
    return mean, variance, {"parts": str(result.parts).partition("kept: ")[2].split("\n")[0]}


def harmonics(num_columns: int) -> Any:
    """A kernel on the sphere, and its harmonics up to the highest degree that has few."""
    import interdomain as idm

    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(num_columns))
    few, degree = None, 1
    while True:
        more = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, num_columns, degree)
        if few is not None and more.num_inducing > FEATURES:
            return kernel, few
        few, degree = more, degree + 1


def gpboost(X: Array, Y: Array, X_test: Array, **arguments: Any) -> Predictions:
    model = race.gpboost((X, Y), likelihood="gaussian", **arguments)
    predicted = model.predict(gp_coords_pred=X_test, predict_var=True, predict_response=True)
    return predicted["mu"], predicted["var"]


def gpytorch(X: Array, Y: Array, X_test: Array) -> Any:
    import gpytorch as gpt
    import torch

    torch.set_num_threads(1)  # idle threads wait actively, which the clock would count
    torch.manual_seed(0)
    started = time.process_time()
    places, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(Y[:, 0]).float()

    class NearestNeighbourGP(gpt.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            q = gpt.variational.MeanFieldVariationalDistribution(len(places))
            super().__init__(
                gpt.variational.NNVariationalStrategy(
                    self, places, q, k=30, training_batch_size=256
                )
            )
            self.mean_module = gpt.means.ConstantMean()
            kernel = gpt.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            kernel.lengthscale = first_lengthscale(X.shape[1])
            self.covar_module = gpt.kernels.ScaleKernel(kernel)

        def forward(self, inputs: Any) -> Any:
            mean, covariance = self.mean_module(inputs), self.covar_module(inputs)
            return gpt.distributions.MultivariateNormal(mean, covariance)

        def __call__(self, inputs: Any, prior: bool = False, **more: Any) -> Any:
            return self.variational_strategy(x=inputs, prior=prior, **more)

    model, likelihood = NearestNeighbourGP(), gpt.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.1
    bound = gpt.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    steps = 0
    while time.process_time() - started < GPYTORCH_SECONDS:
        optimizer.zero_grad()
        output = model(None)
        loss = -bound(output, targets[model.variational_strategy.current_training_indices])
        loss.backward()
        optimizer.step()
        steps += 1
    model.eval()
    likelihood.eval()
    parts = np.array_split(X_test, max(1, len(X_test) // 500))
    with torch.no_grad():
        found = [likelihood(model(torch.tensor(part).float())) for part in parts]
    mean, variance = (
        np.concatenate([getattr(each, name).double().numpy() for each in found])
        for name in ("mean", "variance")
    )
    return mean, variance, {"parts": f"{steps} steps"}


def trees(X: Array, Y: Array, X_test: Array) -> Predictions:
    model, variance = boosted((X, Y), 0, max_iter=500, early_stopping=True)
    return model.predict(X_test), np.full(len(X_test), variance)


METHODS: Mapping[str, Callable[..., Any]] = {
    "features": partial(ours, features=True, near=False),
    "neighbours": partial(ours, features=False, near=True),
    "as_many": partial(ours, features=False, near=True, as_many=True),
    "both": partial(ours, features=True, near=True),
    "trees": trees,
    "linear": linear,
    "nearest_four": nearest_four,
    "gpytorch": gpytorch,
    "gpboost_20": partial(gpboost, gp_approx="vecchia", num_neighbors=20),
    "gpboost_30": partial(gpboost, gp_approx="vecchia", num_neighbors=30),
    "gpboost_vif": partial(
        gpboost, gp_approx="full_scale_vecchia", num_neighbors=30, num_ind_points=200
    ),
}


class NeighboursBenchmark(
    Benchmark, data_dir=str, datasets=DATA, methods=METHODS, folds=range, most_seconds=float
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in arguments.datasets or (("terrain",) if short else DATA):
            for method in arguments.methods or (("features", "both") if short else METHODS):
                if importlib.util.find_spec(library_of(method).partition(".")[0]) is None:
                    continue
                if method in ("linear", "nearest_four") and data not in TWO_COLUMNS:
                    continue
                if data in FOLDS and method not in OF_FOLDS:
                    continue
                given = data in TABLES or data in FOLDS
                configuration = {
                    "data": data,
                    "method": method,
                    "rows": 600 if short else None,
                    "source": source_of(arguments.data_dir) if given else "libraries",
                }
                for fold in (arguments.folds or [0]) if data in FOLDS else [None]:
                    yield configuration if fold is None else {**configuration, "fold": fold}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        most_seconds = arguments.most_seconds or MOST_SECONDS
        return dict(from_child(measured, most_seconds=most_seconds, **given))

    def table(self, records: Records) -> str:
        """A row for each run; of folds that were done the means and deviations."""
        rows, folds = [], dict[tuple[str, str], list[Any]]()
        for run, result in runs(records):
            if "fold" in run and "rmse" in result:
                folds.setdefault((run["data"], run["method"]), []).append(result)
                continue
            row = {**run, **result}
            row["data"] = f"{run['data']}, {run['fold']}" if "fold" in run else run["data"]
            if "not_done_after" in result:
                row["size"] = ""
                row["cpu"] = f"not done after {result['not_done_after']:.0f} s"
            else:
                row |= {"size": f"{result['rows']:,}", "cpu": f"{result['cpu_seconds']:.0f}"}
                row["memory"] = result["peak_bytes"] / 2**30
            rows.append(row)
        of_runs = tabulated(
            rows,
            "data; model = method; rows = size; CPU s = cpu; s = seconds .0f; RMSE = rmse .4f; "
            "NLPD = nll .3f; in 90% = coverage .1%; GiB = memory .1f; kept = parts",
        )
        of_folds = tabulated(
            ({"data": d, "method": m, **means(found)} for (d, m), found in sorted(folds.items())),
            "data; model = method; folds; CPU s = cpu_seconds; RMSE = rmse; NLPD = nll; "
            "in 90% = coverage; kept = parts",
        )
        return f"{of_runs}\n\n{of_folds}"

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Seconds by the number of made-up rows."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for method in METHODS:
            points = sorted(
                (result["rows"], result["cpu_seconds"])
                for run, result in runs(records)
                if run["data"] in MADE and run["method"] == method and "rows" in result
            )
            if len(points) > 1:
                axes.loglog(*zip(*points, strict=True), marker="o", label=method)
        if not axes.lines:
            return
        axes.set(xlabel="rows of two columns", ylabel="CPU seconds, predictions included")
        axes.legend()
        figure.savefig(folder / "neighbours.png", dpi=150)


if __name__ == "__main__":
    NeighboursBenchmark.command()
