"""What does a fit of millions of rows cost, and where do the seconds go?

StructuredSGPR with spherical harmonics of 8 inputs on 3,952,942 made-up flights (flight_table.py)
and on Beijing's air (369,130 rows), all from memory-mapped files.
vish    a fit by `fit` with all harmonics up to degree 3 and 4 (M = 210 and 660):
        seconds of its parts, peak memory, test errors; the products of the pass beside bare ones
        of the same shapes (S S^T, of which NumPy computes one half), its floor;
additive  a sum of effects of the columns, pairs chosen by the data, with 500 features: one call of
        `fit_additive`, beside the errors of the others;
svgp    gpflow's SVGP with 500 points on minibatches: how long until its log density on a sample of
        10,000 test rows reaches that of the stored result of vish with degree 3? It stops after ten
        times the seconds of that fit.

Every configuration runs in a fresh process. The flights (0.4 GB) are kept in `--work-dir`, by
default in the system's temporary folder.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, load_table, source_of
from benchmarks._lib.flight_table import COLUMNS, TRAIN_ROWS, flights
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import Predictor, gaussian_errors
from benchmarks._lib.regression import inducing_points, median_distance
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.tables import megabytes, tabulated
from interdomain.core.pairs import Kuf_in_domain

KINDS = ("vish", "additive", "svgp")
TABLES = ("synthetic", "beijing")
FLOOR_ROUNDS = 50
SAMPLE_ROWS = 10_000  # the first test rows: what SVGP is judged by on its way
INITIAL_NOISE = 0.5  # of targets with variance one; of both tables noise is the larger part
MOMENT_ROWS = 100_000  # of the flights, whose moments normalise all of them
ARRAYS = ("X_train", "Y_train", "X_test", "Y_test")


class AirlineScale(Benchmark, data_dir=str, kinds=KINDS, datasets=TABLES, work_dir=Path):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        fits = {"floor_rounds": FLOOR_ROUNDS, "steps": 20 if short else 500}
        few = {"subset_size": 2_000 if short else 5_000, "subset_steps": 5 if short else 50}
        degrees, sizes = ((3,), (0.1,)) if short else ((3, 4), (0.1, None))
        race = {"target_degree": 3, "truncated": True, "budget": 1.0 if short else 10.0}
        race |= {"num_inducing": 50 if short else 500, "every": 10 if short else 50}
        race |= {"batch_size": 1_000, "learning_rate": 0.01}
        effects = {"num_inducing": 80 if short else 500, "steps": 20 if short else 300}
        settings_by_kind: dict[str, list[Entries]] = {
            "vish": [{"max_degree": one, "truncated": True, **fits, **few} for one in degrees],
            "additive": [{**fits, **effects, "subset_size": 2_000 if short else 20_000}],
            "svgp": [{**race, "natural_gradient": size} for size in sizes],
        }
        for kind in arguments.kinds or KINDS:
            for settings in settings_by_kind[kind]:
                for data in arguments.datasets or TABLES:
                    flying = data == "synthetic"
                    rows = 20_000 if short else TRAIN_ROWS if flying else None
                    source = "generated" if flying else source_of(arguments.data_dir)
                    table = {"data": data, "train_rows": rows, "source": source, "seed": 0}
                    yield {"kind": kind, **table, **settings}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        run = dict(configuration)
        if run["kind"] == "svgp":  # before the rows are written: what it is compared with
            wanted = {"kind": "vish", "max_degree": run["target_degree"]}
            wanted |= {name: run[name] for name in ("data", "train_rows", "source")}
            remedy = "svgp is compared with vish of the same rows: run --kinds vish"
            rival = self.stored(arguments, remedy, **wanted)
            run |= {"vish_seconds": rival["fit_seconds"], "target_nlpd": rival["sample_nlpd"]}
        data, rows = run["data"], run["train_rows"]
        work_dir = arguments.work_dir or Path(tempfile.gettempdir()) / "interdomain_airline"
        folder = prepared(data, rows, work_dir, arguments.data_dir)
        run["paths"] = [str(folder / f"{array}.npy") for array in ARRAYS]
        return dict(from_child(svgp if run["kind"] == "svgp" else fitted, run=run))

    def table(self, records: Records) -> str:
        """Fits and their parts, their errors, and the race with svgp."""
        fits, races = [], []
        for one in sorted(figures(records), key=lambda one: str(one["data"])):
            if one["kind"] == "svgp":
                q = "Adam" if one["natural_gradient"] is None else "natural gradients"
                ratio = f"{'' if one['reached'] else '>= '}{one['ratio']:.1f}"
                races.append({**one, "q": q, "ratio": ratio, "peak": _memory(one, "peak_bytes")})
            else:
                ended = f"{one['steps']}" + ("" if one["converged"] else ", not converged")
                pairs = ", ".join(name for name, _ in one.get("pairs", ()))
                peak = _memory(one, "peak_bytes_of_fit")
                fits.append({**one, "ended": ended, "pairs": pairs, "peak": peak})
        size = "data; rows = num_rows ,; M = num_inducing ,"
        scores = "MSE = mse .4f; NLPD = nlpd .4f; NLPD of sample = sample_nlpd .4f"
        parts = ("subset", "features", "products", "pass")
        seconds = "; ".join(f"{part} s = {part}_seconds .3g" for part in parts)
        return (
            "Fits. The pass is features and products, reading included; fit is all but "
            "predictions. The peak is the most memory that was resident in the process until then, "
            "pages of the files included; in parentheses what it was before the model was "
            "built.\n\n"
            + tabulated(
                fits,
                f"kind; {size}; {seconds}; L-BFGS s = optimisation_seconds .3g; "
                "fit s = fit_seconds .3g; predict s = predict_seconds .3g; "
                "products / bare products = products_over_floor .2f; peak MB = peak",
            )
            + "\n\n"
            + tabulated(fits, f"kind; {size}; {scores}; bound = bound .1f; steps = ended; pairs")
            + "\n\nsvgp, until its log density is that of vish with degree 3.\n\n"
            + tabulated(
                races,
                f"{size}; q by = q; target NLPD of sample = target_nlpd .4f; {scores}; "
                "seconds = seconds .3g; vish s = vish_seconds .3g; svgp / vish = ratio; "
                "steps = steps ,.0f; peak MB = peak",
            )
        )


def prepared(name: str, train_rows: int | None, work_dir: Path, data_dir: str | None) -> Path:
    """The folder of a table's arrays, shuffled and normalised, written if it is not complete. There
    are half as many flights to test; of Beijing's air None takes all rows for training, and all
    test rows of its first split are taken."""
    folder = work_dir / f"{name}_{train_rows}"
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if name == "synthetic":
        assert train_rows is not None
        moments = [(values.mean(axis=0), values.std(axis=0)) for values in flights(MOMENT_ROWS)]
        arrays: list[Array] = []
        for count, test in ((train_rows, False), (train_rows // 2, True)):
            for values, (mean, scale) in zip(flights(count, test=test), moments, strict=True):
                values -= mean
                values /= scale
                arrays.append(values)
    else:
        split = normalise(take_split(load_table("beijing_pm25", data_dir), 0))
        rng = np.random.default_rng(0)
        train = rng.permutation(len(split.X_train))[:train_rows]
        test_rows = rng.permutation(len(split.X_test))
        # All columns but the direction of the wind: an angle jumps where it is north, and of five
        # that were left out in turn (degree 3, 10,000 rows) the bound misses it least.
        arrays = [split.X_train[train, :8], split.Y_train[train]]
        arrays += [split.X_test[test_rows, :8], split.Y_test[test_rows]]
    for array, values in zip(ARRAYS, arrays, strict=True):
        np.save(folder / f"{array}.npy", values)
    (folder / "complete").touch()
    return folder


def fitted(run: dict[str, Any]) -> dict[str, Any]:
    """One fit of harmonics, or of effects: the cost of its parts, and its test errors."""
    before = peak_of_process()
    X, Y, X_test, Y_test = (np.load(path, mmap_mode="r") for path in run["paths"])
    start = time.perf_counter()
    if run["kind"] == "vish":
        scales = np.full(X.shape[1], 1.0 / X.shape[1])
        kernel = idm.kernels.SphericalMatern32(weight_variances=scales)
        harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(
            kernel, X.shape[1], run["max_degree"]
        )
        prior = idm.kernels.FiniteRank(kernel, harmonics)
        model = idm.models.StructuredSGPR(
            (X, Y), prior, harmonics, noise_variance=INITIAL_NOISE, progress=False
        )
        built = time.perf_counter()
        options = {name: run[name] for name in ("seed", "subset_size", "subset_steps")}
        outcome = idm.fit(model, steps=run["steps"], progress=False, options=options)
        assert outcome.subset is not None
        more = {
            "build_seconds": built - start,
            "subset_steps": outcome.subset.steps,
            "subset_converged": outcome.subset.converged,
        }
    else:
        columns = COLUMNS if run["data"] == "synthetic" else None
        quiet = {name: run[name] for name in ("seed", "steps", "subset_size")}
        outcome = idm.tables.fit_additive(
            (X, Y), run["num_inducing"], names=columns, progress=False, **quiet
        )
        model = outcome.model
        more = {"pairs": list(map(list, outcome.pairs.items()))}
    seconds, peak = time.perf_counter() - start, peak_of_process()
    fit = getattr(outcome, "result", outcome)  # of `fit_additive`, or of `fit`
    size = int(model.inducing_variable.num_inducing)
    at_once = max(256, min(8192, 2**22 // size))  # rows of a batch, as by default
    batches = len(X) / at_once
    features = batches * features_seconds(model, X[:at_once])
    products = outcome.pass_seconds - features
    # S S^T, S [size, at_once], of which NumPy computes one half.
    S = np.random.default_rng(0).normal(size=(len(model.statistics.sums["gram"]), at_once))
    product = np.empty((len(S), len(S)))
    floor = batches * median_seconds(lambda: np.matmul(S, S.T, out=product), FLOOR_ROUNDS)
    predicting = time.perf_counter()
    errors = errors_of(model, X_test, Y_test)
    return {
        "num_rows": model.num_data,
        "test_rows": len(X_test),
        "num_inducing": size,
        "subset_seconds": outcome.subset_seconds,
        "pass_seconds": outcome.pass_seconds,
        "features_seconds": features,
        "products_seconds": products,
        "floor_seconds": floor,
        "products_over_floor": products / floor,
        "optimisation_seconds": outcome.seconds - outcome.subset_seconds - outcome.pass_seconds,
        "fit_seconds": seconds,
        "predict_seconds": time.perf_counter() - predicting,
        "peak_bytes_before": before,
        "peak_bytes_of_fit": peak,
        **errors,
        "bound": fit.elbo,
        "steps": fit.steps,
        "converged": fit.converged,
        **more,
    }


def features_seconds(model: Any, X: Array) -> float:
    """Seconds of the features of a batch, without their products: the median of five."""
    parts, X = (model.inducing_variable, model.kernel), tf.constant(X)
    features = tf.function(lambda X: Kuf_in_domain(*parts, X), autograph=False)
    features(X)
    return median_seconds(lambda: features(X).numpy(), 5)


def median_seconds(call: Any, rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def errors_of(model: Any, X: Array, Y: Array, *, cached: bool = True) -> dict[str, float]:
    """Test errors of all rows, and the negative log density of the first `SAMPLE_ROWS`."""
    mean, variance = Predictor(model, X.shape[1], cached=cached)(X, batch_size=4_000)
    variance += float(model.likelihood.variance.numpy())
    every = gaussian_errors(Y, mean, variance)
    sample = gaussian_errors(*(values[:SAMPLE_ROWS] for values in (Y, mean, variance)))
    return {"mse": every["rmse"] ** 2, "nlpd": every["nll"], "sample_nlpd": sample["nll"]}


def svgp(run: dict[str, Any]) -> dict[str, Any]:
    """SVGP from the choice of its points on, until its log density on a sample of the test rows is
    that of the rival, or its time, without evaluations, is over."""
    before = peak_of_process()
    X, Y, X_test, Y_test = (np.load(path, mmap_mode="r") for path in run["paths"])
    curve: list[dict[str, float]] = []
    budget, spent, since = run["budget"] * run["vish_seconds"], 0.0, time.perf_counter()

    def look(step: int, model: Any) -> None:
        nonlocal spent, since
        spent += time.perf_counter() - since
        errors = errors_of(model, X_test[:SAMPLE_ROWS], Y_test[:SAMPLE_ROWS], cached=False)
        curve.append({"step": step, "seconds": spent, "nlpd": errors["nlpd"]})
        if errors["nlpd"] <= run["target_nlpd"] or spent >= budget:
            raise idm.training.StopFit
        since = time.perf_counter()

    sample = np.array(X[: 20 * run["num_inducing"]])
    lengthscales = np.full(X.shape[1], median_distance(sample, run["seed"]))
    model = gpflow.models.SVGP(
        gpflow.kernels.Matern32(lengthscales=lengthscales),
        gpflow.likelihoods.Gaussian(variance=INITIAL_NOISE),
        inducing_points(sample, run["num_inducing"], run["seed"]),
        num_data=len(X),
    )
    size = run["natural_gradient"]
    natural = gpflow.optimizers.NaturalGradient(size) if size else None
    idm.fit(
        model,
        (X, Y),
        steps=10**9,
        batch_size=run["batch_size"],
        optimizer=(natural, run["learning_rate"]),
        callbacks=[look],
        progress=False,
        options={"every": run["every"], "seed": run["seed"]},
    )
    return {
        "num_rows": len(X),
        "num_inducing": run["num_inducing"],
        "target_nlpd": run["target_nlpd"],
        "budget_seconds": budget,
        "vish_seconds": run["vish_seconds"],
        "reached": curve[-1]["nlpd"] <= run["target_nlpd"],
        "seconds": spent,
        "ratio": spent / run["vish_seconds"],
        "steps": curve[-1]["step"],
        "curve": curve,
        "peak_bytes_before": before,
        "peak_bytes": peak_of_process(),
        **errors_of(model, X_test, Y_test),
    }


def _memory(result: dict[str, Any], name: str) -> str:
    return f"{megabytes(result[name])} ({megabytes(result['peak_bytes_before'])})"


if __name__ == "__main__":
    AirlineScale.command()
