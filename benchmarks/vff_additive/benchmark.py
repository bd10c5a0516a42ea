"""Additive variational Fourier features (A-VFF) beside VISH, on the UCI sets of VISH's Table 1.

Test MSE and NLPD on normalised data (lower is better). Methods, all trained by L-BFGS over every
parameter:
a_vff           a sum of Matern-3/2 kernels on one column each, VariationalFourierFeatures for each,
                30 frequencies per column, in gpflow's SGPR: q is optimal, and joint over the
                columns;
a_vff_mean_field
                the same in AdditiveSVGP, with an independent q for each column, at its optimum;
a_gpr           exact regression with the same sum of kernels, where there are at most 1,000 rows:
                the limit of a_vff with more frequencies and a longer interval;
vish_truncated  the paper's VISH, as in uci_vish; vish is that with the full prior;

For the additive models each column is mapped to [0, 1] by the training rows; constant columns are
left out. The interval reaches beyond the data by --margin lengths of their range on either side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.vish_table import SIZES
from benchmarks.vff_additive.models import FREQUENCIES, MARGIN, METHODS, train
from benchmarks.vff_additive.table import accuracy_table

DEFAULTS = {  # data set: (methods, splits)
    "yacht": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "energy": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "concrete": (("vish_truncated", "a_vff", "a_gpr"), 5),
    "kin8nm": (("vish_truncated", "a_vff"), 1),
    "power": (("vish_truncated", "a_vff"), 1),
}


class VffAdditive(Benchmark):
    __doc__ = __doc__
    name = "vff_additive"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(list(SIZES), "data sets"), default=None)
        parser.add_argument("--methods", type=names(METHODS, "methods"))
        parser.add_argument("--splits", type=indices, default=None, help="such as 0-4")
        parser.add_argument("--frequencies", type=int, default=FREQUENCIES, help="per column")
        parser.add_argument("--margin", type=float, default=MARGIN, help="beyond the data")
        parser.add_argument("--max-iterations", type=int, default=None, help="of L-BFGS")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for dataset in arguments.datasets or (["yacht"] if short else list(SIZES)):
            methods, num_splits = DEFAULTS[dataset]
            for split in arguments.splits or range(1 if short else num_splits):
                for method in arguments.methods or methods:
                    yield self._training(dataset, method, split, arguments)
        if not arguments.methods and not arguments.datasets and not short:
            yield self._training("concrete", "a_vff_mean_field", 0, arguments)

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
        table = load_table(configuration["dataset"], arguments.data_dir)
        return train(configuration, normalise(take_split(table, configuration["split"])))

    def table(self, records: Sequence[Record]) -> str:
        return accuracy_table(records)
