"""One pass over rows in memory: features and their products, beside the bare products.

Two input columns, rows drawn at random, float64. For each M, in turns:
box      BoxFourierFeatures, M at most
sphere   SphericalHarmonics up to the degree that gives no more than M
bare     NumPy's product of a matrix [M, batch] and its transpose into an array that is there, for
         as many batches of the size that the pass chooses

"features" are these by themselves, and "products" what is left of the seconds that the pass reports
for its sums; "pass" is all of it, with reading and checks. Times are seconds for the rows, median
[quartiles].
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.results import Record, runs
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import alternate, ratio, summarise

SIZES = (500, 1_000, 2_000, 3_000)
NUM_ROWS = 60_000
FAMILIES = ("box", "sphere")


class DataPass(Benchmark):
    __doc__ = __doc__
    name = "data_pass"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 7")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for size in (60,) if arguments.short else SIZES:
            yield {
                "num_inducing": size,
                "rows": 3_000 if arguments.short else NUM_ROWS,
                "rounds": arguments.rounds or (3 if arguments.short else 7),
                "seed": 0,
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        rows, size = configuration["rows"], configuration["num_inducing"]
        generator = np.random.default_rng(configuration["seed"])
        X, Y = generator.uniform(-1, 1, size=(rows, 2)), generator.normal(size=(rows, 1))
        passes = {family: Pass(family, size, X, Y) for family in FAMILIES}
        sides: dict[str, Callable[[], Any]] = dict(passes)
        sides |= {f"{family} features": passes[family].features for family in FAMILIES}
        sides["bare"] = bare(size, rows, passes["box"].batch_size)
        samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
        for family, one in passes.items():
            both = one.seconds[-configuration["rounds"] :]
            samples[f"{family} both"] = both
            features = samples[f"{family} features"][-configuration["rounds"] :]
            samples[f"{family} products"] = [a - b for a, b in zip(both, features, strict=True)]
        return {
            "num_inducing": {family: one.num_inducing for family, one in passes.items()},
            "batch_size": passes["box"].batch_size,
            "seconds": {name: summarise(values) for name, values in samples.items()},
            "ratios": {family: ratio(samples, f"{family} both", "bare") for family in FAMILIES},
        }

    def table(self, records: Sequence[Record]) -> str:
        rows = [
            (
                *(family, result["num_inducing"][family], result["batch_size"]),
                *(
                    spread(result["seconds"][f"{family} {part}"])
                    for part in ("features", "products")
                ),
                *(spread(result["seconds"][name]) for name in (family, "bare")),
                spread(result["ratios"][family]),
            )
            for _, result in runs(records)
            for family in FAMILIES
        ]
        headers = ("family", "M", "batch", "features s", "products s", "pass s", "bare s")
        return markdown((*headers, "features + products / bare"), rows)


class Pass:
    """One pass over the rows; a call does it anew.

    :ivar seconds: what the sums of each pass took.
    """

    def __init__(self, family: str, size: int, X: Any, Y: Any) -> None:
        import gpflow
        import tensorflow as tf

        import interdomain as idm
        from interdomain.core.pairs import Kuf_in_domain
        from interdomain.sums import features

        features.FEWEST_IN_TABLES = (size + 1,) * 3  # waves have faster sums: see fast_sums

        if family == "box":
            base = gpflow.kernels.Matern32(lengthscales=0.1)
            kernel = idm.kernels.Periodized.from_data(base, X)
            variable = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, size)
        else:
            degree = int(np.sqrt(size)) - 1
            kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(2))
            variable = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, degree)
            gpflow.set_trainable(kernel.weight_variances, False)
            gpflow.set_trainable(kernel.bias_variance, False)
        self._rows = X, Y
        prior = idm.kernels.FiniteRank(kernel, variable)
        self.num_inducing = int(variable.num_inducing)
        self.batch_size = max(256, min(8192, 2**22 // self.num_inducing))  # as by default
        self._model = idm.models.StructuredSGPR(
            self._rows, prior, variable, batch_size=self.batch_size, progress=False
        )
        self.seconds: list[float] = []
        self._features = tf.function(
            lambda X: Kuf_in_domain(variable, prior, X), autograph=False, reduce_retracing=True
        )

    def __call__(self) -> None:
        start = time.perf_counter()
        self._model.accumulate(self._rows)
        self.seconds.append(time.perf_counter() - start)

    def features(self) -> None:
        """The features of all rows, without sums."""
        X, size = self._rows[0], self.batch_size
        for start in range(0, len(X), size):
            self._features(X[start : start + size]).numpy()


def bare(size: int, rows: int, batch_size: int) -> Callable[[], None]:
    """The products that no pass can do without."""
    matrix = np.random.default_rng(0).normal(size=(size, batch_size))
    product = np.empty((size, size))
    batches = [batch_size] * (rows // batch_size)
    if rows % batch_size:
        batches.append(rows % batch_size)

    def multiply() -> None:
        for batch in batches:
            part = matrix[:, :batch]
            np.matmul(part, part.T, out=product)

    return multiply


if __name__ == "__main__":
    sys.exit(DataPass().main())
