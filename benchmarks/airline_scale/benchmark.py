"""What does a fit of millions of rows cost, and where do the seconds go?

StructuredSGPR with spherical harmonics of 8 inputs on 3,952,942 made-up flights (flight_table.py)
and on Beijing's air (369,130 rows), all from memory-mapped files.
vish    a fit by `fit_sgpr` with all harmonics up to degree 3 and 4 (M = 210 and 660):
        seconds of its parts, peak memory, test errors; the products of the pass beside bare ones
        of the same shapes (S S^T, of which NumPy computes one half), its floor;
additive  a sum of effects of the columns, pairs chosen by the data, with 500 features: one call of
        `fit_additive`, beside the errors of the others;
growth  the pass and a step of L-BFGS after it (bound and gradient), for M = 54 to 1,782 and 10^4
        rows to all flights, with a picture;
svgp    gpflow's SVGP with 500 points on minibatches: how long until its log density on a sample of
        10,000 test rows reaches that of the stored result of vish with degree 3? It stops after ten
        times the seconds of that fit (`--budget`);
workers the pass by one process on one core, and by `--workers` that share the rows, with a
        core each: seconds, and whether the sums are the same.

Every configuration runs in a fresh process. The flights (0.4 GB) are kept in `--work-dir`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.data import DataError, add_data_argument
from benchmarks._lib.flight_table import TRAIN_ROWS
from benchmarks._lib.results import Record, ResultFile, newest_result
from benchmarks._lib.runner import Benchmark, Configuration, indices, names, result_folder
from benchmarks.airline_scale.data import BEIJING, SYNTHETIC, TABLES, prepare, source_of_table
from benchmarks.airline_scale.table import draw, table_of

KINDS = ("vish", "additive", "growth", "svgp", "workers")
RIVAL_DEGREE = 3
BUDGET = 10.0  # times the seconds of the fit that svgp is compared with
FLOOR_ROUNDS = 50
GROWTH_ROWS = (10_000, 100_000, 1_000_000)  # and all


class AirlineScale(Benchmark):
    __doc__ = __doc__
    name = "airline_scale"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--kinds", type=names(KINDS, "kinds"), default=None)
        parser.add_argument("--datasets", type=names(TABLES, "data sets"), default=None)
        parser.add_argument("--degrees", type=indices, default=None, help="of vish, default 3,4")
        parser.add_argument("--growth-degrees", type=indices, default=None, help="default 2-5")
        parser.add_argument("--train-rows", type=int, default=None, help="at most so many")
        parser.add_argument(
            "--full-kernel", action="store_true", help="do not end the kernel at the degree"
        )
        parser.add_argument("--subset-size", type=int, default=None, help="default 5,000")
        parser.add_argument("--subset-steps", type=int, default=None, help="default 50")
        parser.add_argument("--steps", type=int, default=None, help="default 500")
        parser.add_argument(
            "--num-inducing", type=int, default=None, help="of svgp and additive, default 500"
        )
        parser.add_argument(
            "--evaluate-every", type=int, default=None, help="steps of svgp, default 50"
        )
        parser.add_argument(
            "--budget", type=float, default=None, help=f"of svgp, in fits; default {BUDGET:g}"
        )
        parser.add_argument("--workers", type=int, default=2, help="of workers, default 2")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--work-dir",
            type=Path,
            default=Path(tempfile.gettempdir()) / "interdomain_airline",
            help="where the tables are written (default: in the system's temporary folder)",
        )

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        makers = {
            "vish": _fits,
            "additive": _additive,
            "growth": _growth,
            "svgp": _rivals,
            "workers": _shared,
        }
        for kind in arguments.kinds or KINDS:
            for configuration in makers[kind](arguments):
                yield {"kind": kind, **configuration, "seed": arguments.seed}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        # Here, as they need TensorFlow: `--table` and `--help` are quick.
        from benchmarks.airline_scale import fit, svgp, workers

        settings = dict(configuration)
        kind, data, train_rows = (settings.pop(name) for name in ("kind", "data", "train_rows"))
        del settings["source"]
        rival = None
        if kind == "svgp":
            stored = ResultFile(result_folder(arguments) / f"{self.name}.jsonl").records()
            rival = rival_of(
                configuration, stored
            )  # before the rows are written: it may be missing
        folder = prepare(
            data,
            train_rows,
            seed=settings["seed"],
            work_dir=arguments.work_dir,
            data_dir=arguments.data_dir,
        )
        if kind == "vish":
            return dict(from_child(fit.fit_and_predict, folder=str(folder), **settings))
        if kind == "additive":
            return dict(from_child(fit.additive, folder=str(folder), **settings))
        if kind == "growth":
            del settings["seed"]
            return dict(from_child(fit.growth, folder=str(folder), **settings))
        if kind == "workers":
            del settings["seed"]
            return workers.compare(str(folder), **settings)
        assert rival is not None
        del settings["target_degree"], settings["truncated"]
        seconds = rival["fit_seconds"]
        budget = settings.pop("budget") * seconds
        target = rival["sample_nlpd"]
        result = from_child(
            svgp.race,
            folder=str(folder),
            target_nlpd=target,
            budget_seconds=budget,
            **settings,
        )
        return {**result, "vish_seconds": seconds, "ratio": result["seconds"] / seconds}

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw(folder, records)


def rival_of(configuration: Configuration, records: Iterable[Record]) -> dict[str, Any]:
    """The newest stored result of the fit that an svgp configuration is compared with.

    :raises DataError: if there is none.
    """
    wanted = {
        "kind": "vish",
        "max_degree": configuration["target_degree"],
        **{name: configuration[name] for name in ("data", "train_rows", "truncated", "seed")},
        "source": configuration["source"],
    }
    found = newest_result(records, wanted)
    if found is None:
        raise DataError(
            f"there is no stored result of vish with degree {wanted['max_degree']} on the same "
            "rows, which svgp is compared with: run --kinds vish first"
        )
    return found


def _table_of(data: str, arguments: argparse.Namespace) -> Configuration:
    """The entries of a configuration that name its rows; None stands for all rows of Beijing."""
    rows = arguments.train_rows or (20_000 if arguments.short else None)
    return {
        "data": data,
        "train_rows": rows or (TRAIN_ROWS if data == SYNTHETIC else None),
        "source": source_of_table(data, arguments.data_dir),
        "truncated": not arguments.full_kernel,
    }


def _fits(arguments: argparse.Namespace) -> Iterable[Configuration]:
    short = arguments.short
    for degree in arguments.degrees or ([RIVAL_DEGREE] if short else [3, 4]):
        for data in arguments.datasets or (SYNTHETIC, BEIJING):
            yield {
                **_table_of(data, arguments),
                "max_degree": degree,
                "subset_size": arguments.subset_size or (2_000 if short else 5_000),
                "subset_steps": arguments.subset_steps or (5 if short else 50),
                "steps": arguments.steps or (20 if short else 500),
                "floor_rounds": FLOOR_ROUNDS,
            }


def _additive(arguments: argparse.Namespace) -> Iterable[Configuration]:
    short = arguments.short
    for data in arguments.datasets or (SYNTHETIC, BEIJING):
        table = _table_of(data, arguments)
        del table["truncated"]
        yield {
            **table,
            "num_inducing": arguments.num_inducing or (80 if short else 500),
            "subset_size": arguments.subset_size or (2_000 if short else 20_000),
            "steps": arguments.steps or (20 if short else 300),
            "floor_rounds": FLOOR_ROUNDS,
        }


def _growth(arguments: argparse.Namespace) -> Iterable[Configuration]:
    short = arguments.short
    table = _table_of(SYNTHETIC, arguments)
    every = table["train_rows"]
    sizes = [2_000] if short else [rows for rows in GROWTH_ROWS if rows < every]
    for rows in [*sizes, every]:
        for degree in arguments.growth_degrees or ([2] if short else [2, 3, 4, 5]):
            yield {
                **table,
                "num_rows": rows,
                "max_degree": degree,
                "rounds": 3 if short else 7,
                "floor_rounds": FLOOR_ROUNDS,
            }


def _shared(arguments: argparse.Namespace) -> Iterable[Configuration]:
    short = arguments.short
    for degree in arguments.degrees or ([2] if short else [3, 4]):
        yield {
            **_table_of(SYNTHETIC, arguments),
            "max_degree": degree,
            "workers": arguments.workers,
            "rounds": 1 if short else 3,
        }


def _rivals(arguments: argparse.Namespace) -> Iterable[Configuration]:
    short = arguments.short
    for data in arguments.datasets or (BEIJING, SYNTHETIC):
        for natural_gradient in (0.1,) if short else (0.1, None):
            yield {
                **_table_of(data, arguments),
                "target_degree": RIVAL_DEGREE,
                "budget": arguments.budget or (1.0 if short else BUDGET),
                "num_inducing": arguments.num_inducing or (50 if short else 500),
                "batch_size": 1_000,
                "learning_rate": 0.01,
                "natural_gradient": natural_gradient,
                "every": arguments.evaluate_every or (10 if short else 50),
            }
