"""Chosen harmonics against whole degrees: what does a feature cost?

Kuf of 10,000 rows under SphericalMatern52, whose weight variances fall by 0.7 from column to
column; forward, and forward with the gradient to the weight variances, compiled, float64:
chosen  SphericalHarmonics.for_data(kernel, X, M), for M from 200 to 5,000;
whole   all degrees up to that with about as many harmonics.
Times are seconds, median [quartiles] over rounds in which the sides take turns; they are compared
per feature. Peak memory, each side in a process of its own, is in units of one float64 per feature
and row: Kuf itself is one of them; the gradient that comes into it is there before, and not
counted. The time to choose, from 2,000 of the rows, is that of one call, and the share that of the
prior variance over 2,000 rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from math import comb
from typing import Any

import numpy as np

from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import alternate, summarise

NUM_ROWS = 10_000
INPUT_DIMS = (8, 17, 30)
NUM_FEATURES = (200, 1_000, 5_000)
SIDES = ("chosen", "whole")
WORKS = ("forward", "gradient")
TARGET = 2.0  # chosen / whole, per feature


class HarmonicFeatures(Benchmark):
    __doc__ = __doc__
    name = "harmonic_features"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 5")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for input_dim in (5,) if arguments.short else INPUT_DIMS:
            for num_features in (50,) if arguments.short else NUM_FEATURES:
                yield {
                    "input_dim": input_dim,
                    "num_features": num_features,
                    "rows": 500 if arguments.short else NUM_ROWS,
                    "rounds": arguments.rounds or (3 if arguments.short else 5),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        size = {key: configuration[key] for key in ("input_dim", "num_features", "rows", "seed")}
        result: dict[str, Any] = {"choice": choice(**size)}
        counts = {"chosen": result["choice"]["features"], "whole": whole_degrees(**size)[1]}
        for work in WORKS:
            peaks = {side: peak_bytes(call_of, side=side, work=work, **size) for side in SIDES}
            sides = {side: call_of(side=side, work=work, **size) for side in SIDES}
            samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
            pairs = zip(samples["chosen"], samples["whole"], strict=True)
            each = counts["chosen"] / counts["whole"]
            result[work] = {
                "seconds": {side: summarise(values) for side, values in samples.items()},
                "ratio_per_feature": summarise([chosen / whole / each for chosen, whole in pairs]),
                "peak_bytes": peaks,
            }
        return {**result, "features": counts}

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def rows_and_kernel(input_dim: int, rows: int, seed: int) -> tuple[Any, Any]:
    import interdomain as idm

    X = np.random.default_rng(seed).normal(size=(rows, input_dim))
    weights = 0.7 ** np.arange(input_dim)
    return X, idm.kernels.SphericalMatern52(weight_variances=weights)


def whole_degrees(input_dim: int, num_features: int, **_: int) -> tuple[int, int]:
    """The highest of the degrees with about so many harmonics, and how many they have."""
    counts = [
        comb(input_dim + degree, degree)
        + (comb(input_dim + degree - 1, degree - 1) if degree else 0)
        for degree in range(30)
    ]
    degree = int(np.argmin(np.abs(np.log(np.array(counts) / num_features))))
    return degree, counts[degree]


def choice(input_dim: int, num_features: int, rows: int, seed: int) -> dict[str, Any]:
    """How long the choice takes, after one of ten harmonics, and what is chosen."""
    import interdomain as idm

    X, kernel = rows_and_kernel(input_dim, rows, seed)
    for_data = idm.inducing_variables.SphericalHarmonics.for_data
    for_data(kernel, X, 10)
    start = time.perf_counter()
    harmonics = for_data(kernel, X, num_features)
    seconds = time.perf_counter() - start
    shares = idm.diagnostics.harmonic_shares(harmonics, kernel, X[:2_000])
    whole = idm.inducing_variables.SphericalHarmonics(
        input_dim + 1, range(whole_degrees(input_dim, num_features)[0] + 1)
    )
    return {
        "features": harmonics.num_inducing,
        "max_degree": max(harmonics.degrees),
        "seconds": seconds,
        "share": shares.share,
        "share_of_whole": idm.diagnostics.harmonic_shares(whole, kernel, X[:2_000]).share,
    }


def call_of(
    *, side: str, work: str, input_dim: int, num_features: int, rows: int, seed: int
) -> Callable[[], Any]:
    """Kuf, or Kuf and its gradient, compiled and traced."""
    import tensorflow as tf
    from gpflow.covariances import Kuf

    import interdomain as idm

    inputs, kernel = rows_and_kernel(input_dim, rows, seed)
    if side == "chosen":
        features = idm.inducing_variables.SphericalHarmonics.for_data(kernel, inputs, num_features)
    else:
        degrees = range(whole_degrees(input_dim, num_features)[0] + 1)
        features = idm.inducing_variables.SphericalHarmonics(input_dim + 1, degrees)
    X = tf.constant(inputs)
    shape = [features.num_inducing, rows] if work == "gradient" else [1, 1]
    upstream = tf.constant(np.random.default_rng(seed).normal(size=shape))

    @tf.function(autograph=False)
    def forward(X: tf.Tensor, upstream: tf.Tensor) -> Any:
        return Kuf(features, kernel, X)

    @tf.function(autograph=False)
    def gradient(X: tf.Tensor, upstream: tf.Tensor) -> Any:
        weights = kernel.weight_variances.unconstrained_variable
        with tf.GradientTape() as tape:
            values = Kuf(features, kernel, X)
        return values, tape.gradient(values, weights, output_gradients=upstream)

    function = {"forward": forward, "gradient": gradient}[work]
    function.get_concrete_function(X, upstream)
    return lambda: function(X, upstream)


def table_of(records: Sequence[Record]) -> str:
    """A row for each size and kind of work, and one for each choice."""
    rows, choices = [], []
    for record in sorted(records, key=_position):
        run, result = record["configuration"], record["result"]
        counts, chosen = result["features"], result["choice"]
        degree, _ = whole_degrees(run["input_dim"], run["num_features"])
        for work in WORKS:
            found = result[work]
            excess = found["ratio_per_feature"]
            memory = (
                f"{found['peak_bytes'][side] / (8 * counts[side] * run['rows']):.1f}"
                for side in SIDES
            )
            rows.append(
                (
                    run["input_dim"],
                    *(f"{counts[side]:,}" for side in SIDES),
                    work,
                    *(spread(found["seconds"][side]) for side in SIDES),
                    spread(excess),
                    f"{TARGET:g}: {'met' if excess['median'] <= TARGET else 'missed'}",
                    *memory,
                )
            )
        choices.append(
            (
                run["input_dim"],
                f"{counts['chosen']:,}",
                chosen["max_degree"],
                f"{chosen['seconds']:.2f}",
                f"{chosen['share']:.1%}",
                f"{counts['whole']:,}",
                degree,
                f"{chosen['share_of_whole']:.1%}",
            )
        )
    headers = ("D", "M chosen", "M whole", "work", *SIDES, "chosen/whole per feature", "target")
    text = markdown((*headers, *(f"memory: {side}" for side in SIDES)), rows)
    headers = ("D", "M chosen", "highest degree", "seconds to choose", "share")
    return f"{text}\n\n" + markdown((*headers, "M whole", "their degree", "their share"), choices)


def _position(record: Record) -> tuple[int, int]:
    run = record["configuration"]
    return run["input_dim"], run["num_features"]


if __name__ == "__main__":
    sys.exit(HarmonicFeatures().main())
