"""Two classes, millions of rows in files: collapsed passes beside minibatches at equal seconds.

A made-up table of the size of SUSY (event_table.py: 5,000,000 rows of 18 columns, float32, and
500,000 held out), with two classes; Bernoulli likelihood. Every method reads the memory-mapped
files, in a process of its own.
truth       the probabilities that the classes were drawn with: what no method can exceed
collapsed   `DualSVGP` over harmonics chosen for the kernel, `fit_collapsed`; no pass begins
            after `--max-seconds`
diagonal    the same harmonics in stock SVGP with a diagonal q, minibatches of 1,000, Adam for all
svgp        stock SVGP with points (k-means of 20,000 rows) and a Matern-5/2 that has a lengthscale
            for each column, a full q by natural gradients, minibatches of 1,000
The last two are looked at when as many seconds have passed as collapsed took in all, in its stored
result, and at multiples of that (`--times`). The clock runs from the opened files on: the input
scales of the harmonics (whole degrees up to 2, trained on `--subset-size` rows), the choice of
harmonics, k-means and tracing count; imports and evaluations do not. The files (0.4 GB) are kept in
`--work-dir`. Aim: peak memory, pages of the files included, of 2 GiB.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import DataError
from benchmarks._lib.event_table import TEST_ROWS, TRAIN_ROWS, collisions, probability
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import two_class_scores
from benchmarks._lib.race import ROWS_FOR_CENTRES, traced
from benchmarks._lib.results import Record, ResultFile, newest_result
from benchmarks._lib.row_files import RowFiles, open_rows, write_table, written_once
from benchmarks._lib.runner import Benchmark, Configuration, indices, names, result_folder
from benchmarks._lib.table_models import chosen_harmonics
from benchmarks._lib.tables import markdown

METHODS = ("truth", "collapsed", "diagonal", "svgp")
TARGET_BYTES = 2 * 2**30
MOMENT_ROWS = 100_000  # whose moments normalise all rows
RATES = {"diagonal": 0.03, "svgp": 0.01}
_FORMAT = 1


class ClassificationScale(Benchmark):
    __doc__ = __doc__
    name = "classification_scale"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--methods", type=names(METHODS, "methods"), default=METHODS)
        parser.add_argument("--rows", type=int, default=None, help=f"default {TRAIN_ROWS:,}")
        parser.add_argument("--num-inducing", type=int, default=None, help="harmonics, default 500")
        parser.add_argument("--num-points", type=int, default=None, help="of svgp, default 500")
        parser.add_argument(
            "--subset-size", type=int, default=None, help="rows for the scales, default 10,000"
        )
        parser.add_argument(
            "--max-seconds", type=int, default=1_800, help="of collapsed, default 1,800"
        )
        parser.add_argument(
            "--times", type=indices, default=None, help="when rivals are looked at, default 1,2,4"
        )
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--work-dir",
            type=Path,
            default=Path(tempfile.gettempdir()) / "interdomain_collisions",
            help="where the tables are written (default: in the system's temporary folder)",
        )

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        rows = arguments.rows or (2_000 if short else TRAIN_ROWS)
        table = {
            "rows": rows,
            "test_rows": max(1, min(TEST_ROWS, rows // 10)),
            "seed": arguments.seed,
        }
        collapsed = {
            **table,
            "num_inducing": arguments.num_inducing or (30 if short else 500),
            "subset_size": arguments.subset_size or (300 if short else 10_000),
            "max_seconds": arguments.max_seconds,
        }
        rival = {**collapsed, "times": arguments.times or ([0.2] if short else [1, 2, 4])}
        points = {"num_points": arguments.num_points or (30 if short else 500)}
        of_method = {
            "truth": table,
            "collapsed": collapsed,
            "diagonal": rival,
            "svgp": {**rival, **points},
        }
        for method in arguments.methods:
            yield {"method": method, **of_method[method]}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        settings = dict(configuration)
        method, num_rows, test_rows = settings["method"], settings["rows"], settings["test_rows"]
        if method == "truth":
            return truth(test_rows, settings["seed"])
        if method != "collapsed":  # before the rows are written: it may be missing
            stored = ResultFile(result_folder(arguments) / f"{self.name}.jsonl").records()
            taken = seconds_of_collapsed(configuration, stored)
            settings["seconds"] = [times * taken for times in settings["times"]]
        folder = prepare(num_rows, test_rows, settings["seed"], arguments.work_dir)
        function = {"collapsed": collapsed, "diagonal": diagonal, "svgp": svgp}[method]
        return dict(from_child(function, folder=str(folder), settings=settings))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def seconds_of_collapsed(configuration: Configuration, records: Iterable[Record]) -> float:
    """What collapsed took in all, in its newest stored result for the same table and harmonics.

    :raises DataError: If there is none.
    """
    own = ("times", "num_points")
    wanted = {name: value for name, value in configuration.items() if name not in own}
    found = newest_result(records, {**wanted, "method": "collapsed"})
    if found is None:
        raise DataError(
            "there is no stored result of collapsed for the same rows and harmonics, and the "
            "others get its seconds: run --methods collapsed with the same options first"
        )
    return float(found["trace"][-1]["seconds"])


def prepare(num_rows: int, test_rows: int, seed: int, work_dir: Path) -> Path:
    """The folder of a table, which is written if it does not exist or is not complete."""
    number = {"train": num_rows, "test": test_rows}
    description = {"format": _FORMAT, "table": "collisions", **number, "seed": seed}
    write = functools.partial(
        write_table,
        rows=functools.partial(collisions, seed=seed),
        num_rows=number,
        moment_rows=MOMENT_ROWS,
        classes=True,
        dtype=np.float32,
    )
    return written_once(work_dir / f"collisions_{num_rows}_seed{seed}", description, write)


def truth(test_rows: int, seed: int) -> dict[str, Any]:
    """The scores of the probabilities that the held-out classes were drawn with."""
    pieces = [(Y, probability(X)) for X, Y in collisions(0, test_rows, seed=seed, test=True)]
    Y, probabilities = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return two_class_scores(Y, probabilities)


def collapsed(*, folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Passes over all rows; in a process of its own, as the others."""
    import gpflow

    import interdomain as idm

    before, rows = peak_of_process(), open_rows(Path(folder))
    started = time.perf_counter()
    prior, chosen, likelihood = harmonics(rows, settings)
    ready = time.perf_counter()
    data = rows.X_train, rows.Y_train
    model = idm.models.DualSVGP(data, prior, likelihood, chosen, progress=False)
    fit = idm.training.fit_collapsed(
        model, max_seconds=settings["max_seconds"], seed=settings["seed"], progress=False
    )
    passed, peak_of_fit = time.perf_counter() - started, peak_of_process()
    return {
        "trace": [{"seconds": passed, **scores(model, rows)}],
        "num_inducing": int(chosen.num_inducing),
        "elbos": list(fit.elbos),
        "reason": fit.reason,
        "scales_seconds": ready - started,
        "subset_seconds": fit.subset_seconds,
        "pass_seconds": fit.pass_seconds,
        **memory(before, peak_of_fit),
        "parameters": {
            name: np.asarray(parameter).tolist()
            for name, parameter in gpflow.utilities.parameter_dict(prior).items()
        },
    }


def diagonal(*, folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A diagonal q over the same harmonics."""
    import gpflow

    import interdomain  # noqa: F401 - imports are not counted

    before, rows = peak_of_process(), open_rows(Path(folder))
    started = time.perf_counter()
    prior, chosen, likelihood = harmonics(rows, settings)
    ready = time.perf_counter()
    model = gpflow.models.SVGP(prior, likelihood, chosen, q_diag=True, num_data=len(rows.X_train))
    trace = looked_at(model, rows, settings, started)
    return {
        "trace": trace,
        "num_inducing": int(chosen.num_inducing),
        "scales_seconds": ready - started,
        **memory(before),
    }


def svgp(*, folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Points, and a full q."""
    import gpflow

    from benchmarks._lib.regression import inducing_points

    before, rows = peak_of_process(), open_rows(Path(folder))
    started = time.perf_counter()
    sample = np.array(rows.X_train[:ROWS_FOR_CENTRES], float)
    input_dim = sample.shape[1]
    model = gpflow.models.SVGP(
        gpflow.kernels.Matern52(lengthscales=np.full(input_dim, np.sqrt(input_dim))),
        gpflow.likelihoods.Bernoulli(),
        inducing_points(sample, settings["num_points"], settings["seed"]),
        num_data=len(rows.X_train),
    )
    trace = looked_at(model, rows, settings, started, natural_gradient=True)
    return {"trace": trace, "num_inducing": settings["num_points"], **memory(before)}


def harmonics(rows: RowFiles, settings: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A prior of finite rank, its harmonics, and the likelihood. The input scales are found on the
    first rows: their order is random."""
    import gpflow

    size = settings["subset_size"]
    some = np.array(rows.X_train[:size]), np.array(rows.Y_train[:size])
    likelihood = gpflow.likelihoods.Bernoulli()
    prior, chosen, _ = chosen_harmonics(
        some, likelihood, settings["num_inducing"], subset_size=size, seed=settings["seed"]
    )
    return prior, chosen, likelihood


def looked_at(
    model: Any, rows: RowFiles, settings: dict[str, Any], started: float, **arguments: Any
) -> list[dict[str, float]]:
    """Minibatches, and the scores whenever one of the times has passed."""
    return traced(
        model,
        (rows.X_train, rows.Y_train),
        lambda model: scores(model, rows),
        settings["seconds"],
        started,
        optimizer=RATES[settings["method"]],
        seed=settings["seed"],
        progress=False,
        **arguments,
    )


def scores(model: Any, rows: RowFiles) -> dict[str, float]:
    """Of the rows held out."""
    import interdomain as idm

    means, _ = idm.predict_in_batches(model, rows.X_test, method="predict_y", progress=False)
    return two_class_scores(np.asarray(rows.Y_test), means)


def memory(before: int, of_fit: int | None = None) -> dict[str, Any]:
    peak = peak_of_process()
    fit = {} if of_fit is None else {"peak_bytes_of_fit": of_fit}
    return {"peak_bytes_before": before, **fit, "peak_bytes": peak}


def table_of(records: Sequence[Record]) -> str:
    """A row for each method and time, the truth first; and the bounds that the passes found."""
    lines, notes = [], []
    for record in sorted(records, key=_position):
        run, result = record["configuration"], record["result"]
        size = f"{run['rows']:,}"
        if run["method"] == "truth":
            lines.append((size, "truth", "", "", "", *_scores(result), ""))
            continue
        peak = result["peak_bytes"]
        met = f"{peak / 2**30:.2f} ({'met' if peak <= TARGET_BYTES else 'NOT met'})"
        for number, one in enumerate(result["trace"]):
            steps = f"{one['steps']:,.0f}" if "steps" in one else f"{len(result['elbos'])} passes"
            taken = f"{one['seconds']:.0f}", steps
            last = number == len(result["trace"]) - 1
            lines.append(
                (size, run["method"], result["num_inducing"], *taken, *_scores(one))
                + ((met,) if last else ("",))
            )
        if "elbos" in result:
            bounds = ", ".join(f"{bound / run['rows']:.6f}" for bound in result["elbos"])
            notes.append(
                f"{size} rows, collapsed ({result['reason']}): {result['scales_seconds']:.0f} s "
                f"for scales and the choice, {result['subset_seconds']:.0f} s on the subset, "
                f"{result['pass_seconds']:.0f} s of passes. Bounds a row: {bounds}"
            )
    headers = (
        *("rows", "method", "M", "seconds", "steps", "AUC", "log density"),
        f"peak GiB (<= {TARGET_BYTES / 2**30:g})",
    )
    return "\n\n".join([markdown(headers, lines), *notes])


def _position(record: Record) -> tuple[int, int]:
    run = record["configuration"]
    return run["rows"], METHODS.index(run["method"])


def _scores(one: dict[str, float]) -> tuple[str, str]:
    return f"{one['auc']:.4f}", f"{one['log_density']:.4f}"


if __name__ == "__main__":
    sys.exit(ClassificationScale().main())
