"""Answers that others have computed, beside the same models here: additive models of R's mgcv.

mgcv_gaussian   StructuredSGPR and DualSVGP: the same to rounding
mgcv_poisson    DualSVGP: mgcv has Laplace's approximation, ours is the averaged Gaussian one
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, source_of
from benchmarks._lib.results import Record, runs
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown
from benchmarks.referees.mgcv import mgcv_gaussian, mgcv_poisson

REFEREES = {"mgcv_gaussian": mgcv_gaussian, "mgcv_poisson": mgcv_poisson}


class Referees(Benchmark):
    __doc__ = __doc__
    name = "referees"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--referees", type=names(tuple(REFEREES), "referees"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for referee in arguments.referees or (list(REFEREES)[:1] if arguments.short else REFEREES):
            yield {"referee": referee, "source": source_of(arguments.data_dir)}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return REFEREES[configuration["referee"]](arguments.data_dir)

    def table(self, records: Sequence[Record]) -> str:
        rows = [
            (run["referee"], name.replace("_", " "), f"{value:.2g}")
            for run, result in runs(records)
            for name, value in result.items()
        ]
        return markdown(("referee", "what", "figure"), rows)
