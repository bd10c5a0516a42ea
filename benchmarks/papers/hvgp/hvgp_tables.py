"""HVGP's regression benchmarks (Sun et al. 2021, Figures 5, 8 and 10), on protein and keggdirected.

svgp_m, svgp_2m, svgp_4m   gpflow's SVGP with M, 2M and 4M inducing points.
hvgp_2xm, ..., hvgp_8xm    HVGP under the negation of 1, 2 or 3 groups of principal directions: 2, 4
                           or 8 components with M points each.

As in the paper, a Matern-3/2 has one lengthscale for all columns, at first the median distance. The
paper has M = 1,000 and data sets of at least 200,000 rows; here are M = 200 and the first split of
two tables. Points start at centres of k-means, of different rows for each component. Minibatches of
1,000, natural gradients of the default sizes for q, Adam 0.01 for the rest. Each model runs in its
own process. Its clock counts CPU seconds of k-means and start-up, and excludes imports and
evaluations. Figures after equal steps and after equal seconds come from one training.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import load_table, source_of
from benchmarks._lib.looks import bound_per_row, compared, trained_with_looks
from benchmarks._lib.race import evaluated
from benchmarks._lib.regression import inducing_points, median_distance
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Record, Records
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import tabulated

DATA = ("protein", "keggdirected")
MODELS = ("svgp_m", "svgp_2m", "svgp_4m", "hvgp_2xm", "hvgp_4xm", "hvgp_8xm")
SECONDS = [10.0, 20.0, 40.0]
STEPS = (50, 100, 200, 400, 600, 800, 1_200, 1_600, 2_400, 3_200)
BATCH_SIZE = 1_000
ROWS_FOR_BOUND = 5_000
ROWS_FOR_CENTRES = 10_000


class HvgpTables(Benchmark, data_dir=str, datasets=DATA, models=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in arguments.datasets or (DATA[:1] if short else DATA):
            for model in arguments.models or (("svgp_m", "hvgp_4xm") if short else MODELS):
                yield {
                    "data": data,
                    "model": model,
                    "num_inducing": 10 if short else 200,
                    "seconds": [2.0, 3.0] if short else SECONDS,
                    "split": 0,
                    "source": source_of(arguments.data_dir),
                }

    def table(self, records: Records) -> str:
        """A table for each data set."""
        parts = []
        for data in DATA:
            models = {
                record["configuration"]["model"]: record
                for record in records
                if record["configuration"]["data"] == data
            }
            parts += [_table(data, models)] if models else []
        return "\n\n".join(parts)


def measured(**run: Any) -> Entries:
    """Train one model, in its own process."""
    rows = normalise(take_split(load_table(run["data"], run["data_dir"]), run["split"]))
    data, held_out = (rows.X_train, rows.Y_train), (rows.X_test, rows.Y_test)
    started = time.process_time()
    built = build_model(run["model"], rows, run["num_inducing"], seed=run["split"])
    bound = bound_per_row(built, *(part[:ROWS_FOR_BOUND] for part in data), len(rows.X_train))
    trace = trained_with_looks(
        built,
        data,
        lambda model: {**evaluated(model, held_out), "bound": bound()},
        seconds=run["seconds"],
        steps=STEPS,
        started=started,
        batch_size=min(BATCH_SIZE, len(rows.X_train)),
        optimizer=0.01,
        options={"seed": run["split"]},
    )
    return {"trace": trace, "rows": len(rows.X_train), "test_rows": len(rows.X_test)}


def parts_of(name: str) -> tuple[int, int]:
    """The number of components of a model, and the number of its points divided by M."""
    times = int(name.split("_")[1].rstrip("m").rstrip("x") or 1)
    return (times, 1) if name.startswith("hvgp") else (1, times)


def build_model(name: str, rows: NormalisedSplit, num_inducing: int, seed: int) -> Any:
    """A model at its initial parameters."""
    components, times = parts_of(name)
    kernel = gpflow.kernels.Matern32(lengthscales=median_distance(rows.X_train, seed, 1_000))
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    num_data = len(rows.X_train)
    # Centres of k-means of different rows for each component, [components, times m, D].
    order = np.random.default_rng(seed).permutation(num_data)
    share = min(ROWS_FOR_CENTRES, num_data) // components
    parts = (rows.X_train[order[i * share : (i + 1) * share]] for i in range(components))
    Z = np.stack([inducing_points(part, times * num_inducing, seed) for part in parts])
    if components == 1:
        return gpflow.models.SVGP(kernel, likelihood, Z[0], num_data=num_data)
    negations = idm.transforms.PrincipalNegation.from_data(
        rows.X_train, components.bit_length() - 1
    )
    return idm.models.HVGP(kernel, likelihood, Z, negations, num_data=num_data)


def _table(data: str, found: Mapping[str, Record]) -> str:
    models = [name for name in MODELS if name in found]
    run = found[models[0]]["configuration"]
    num_inducing, seconds = run["num_inducing"], run["seconds"]
    traces = [found[name]["result"]["trace"] for name in models]
    step, cells = compared(traces, STEPS, seconds, _figures)
    rows = []
    for name, cell in zip(models, cells, strict=True):
        components, times = parts_of(name)
        points = f"{components} x {num_inducing}" if components > 1 else times * num_inducing
        rows.append({"model": name, "points": points, **cell})
    after = " / ".join(f"{one:g}" for one in seconds)
    result = found[models[0]]["result"]
    title = f"{data}, {result['rows']:,} rows, {result['test_rows']:,} test rows"
    return f"{title}\n\n" + tabulated(
        rows,
        f"model; points; s per step = per_step .4f; NLPD after {step} steps = then_0; "
        f"RMSE then = then_1; bound of a row then = then_2; NLPD after {after} s = by_time; "
        "final NLPD = last_0; final RMSE = last_1; final bound of a row = last_2; steps",
    )


def _figures(look: Mapping[str, float]) -> list[str]:
    return [f"{look[name]:.3f}" for name in ("nll", "rmse", "bound")]


if __name__ == "__main__":
    HvgpTables.command()
