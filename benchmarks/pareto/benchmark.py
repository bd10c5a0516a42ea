"""Test log density and RMSE against seconds: GPflow's SVGP, other libraries, trees and ours.

Nine data sets: kin8nm, power, protein, keggdirected (first split), beijing_pm25 (a tenth held out),
flights (200,000 synthetic rows, as in `airline_scale`: the delay), terrain (the mountain range that
ships with matplotlib), banana, and mnist, zeros against ones (Bernoulli). `recommend` was developed
without three more sets: the first folds of tetouan, precipitation and magic (see `neighbours` and
`any_likelihood`; as columns of numbers). Each model runs in its own process, and its clock counts
CPU seconds (`race(clock="cpu")`). It includes k-means and tracing, and excludes imports and
predictions of test rows. Columns and the target of a regression are standardised.
svgp_M        GPflow's SVGP with M points (k-means), Matern-5/2 with a lengthscale for each column,
              natural gradients and Adam, minibatches of 1,000: the defaults of `race`.
svgp_M_adam   svgp_M with Adam 0.01 for all parameters.
gpytorch_M    GPyTorch's SVGP (if installed) with these points and this kernel, Adam 0.01, and
              single precision, its default.
gpboost_20    GPBoost's Vecchia approximation (if installed), 20 neighbours, a Matern-3/2; only on
              kin8nm and power: `neighbours` has its seconds on other sets.
exact         GPflow's GPR on 2,000 rows.
boosting      scikit-learn's gradient boosting; the variance is that of the residuals of a tenth of
              the rows.
boosting_t    trees for the mean and for the scale of a Student-t density.
equispaced waves  an equispaced Fourier GP by FFTs and conjugate gradients, on maps.
main effects  `fit_additive` of 100 features of single columns.
neighbours_t  the candidate neighbours under Student-t noise.
recommend     the choice of `recommend` after 60 seconds.
All others are candidates of `recommend` for the data, of M = 500 (waves 1,000). Names with _200 or
_100 have that M.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import source_of
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.standard_sets import DATA, MADE, rows_of
from benchmarks.pareto.methods import GPBOOST, GPYTORCH, METHODS, Task
from benchmarks.pareto.pictures import draw_curves
from benchmarks.pareto.verdicts import table_of

BUDGETS = (10.0, 20.0, 40.0, 80.0, 120.0)
MOST_TESTED = 10_000


class Pareto(Benchmark, data_dir=str, datasets=DATA, methods=METHODS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for method in arguments.methods or (("svgp_200", "waves") if short else METHODS):
            library = {GPYTORCH: "gpytorch", GPBOOST: "gpboost"}.get(method, "interdomain")
            if importlib.util.find_spec(library) is None:
                continue
            for data in arguments.datasets or (("terrain",) if short else DATA):
                if data in METHODS[method].data:
                    yield {
                        "data": data,
                        "method": method,
                        "num_inducing": 20 if short else 500,
                        "rows": 500 if short else None,
                        "seconds": [0.5, 1.0] if short else list(BUDGETS),
                        "source": "libraries" if data in MADE else source_of(arguments.data_dir),
                    }

    def table(self, records: Records) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        draw_curves(folder, records)


def measured(**run: Any) -> Entries:
    """Train one model, in its own process. The number of inducing variables is that of the method;
    only a short run, of some rows, has it in the configuration."""
    (X, Y), held_out = rows_of(run["data"], run["data_dir"])
    order = np.random.default_rng(0).permutation(len(X))[: run["rows"]]
    task = Task(
        run["method"],
        run["data"],
        train=(X[order], Y[order]),
        held_out=(held_out[0][:MOST_TESTED], held_out[1][:MOST_TESTED]),
        seconds=run["seconds"],
        num_inducing=None if run["rows"] is None else run["num_inducing"],
    )
    return {"num_rows": len(order), **METHODS[run["method"]].train(task)}
