"""One training step with a diagonal Kuu against one with a dense Kuu.

elbo + gradient to every trainable variable, compiled, of gpflow's SVGP with a Gaussian likelihood,
8 inputs, 1,024 rows, float64:
points     InducingPoints under gpflow's Matern-3/2 (one lengthscale per input);
harmonics  as many SphericalHarmonics under SphericalMatern32 (one weight variance per input);
bare       with full q and at the largest M: only the products that no implementation can avoid,
           A = q_sqrt^T K and the gradients of A to both factors.

Times are seconds, median [quartiles] over rounds in which the sides take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, ratio, summarise

INPUT_DIM = 8
LARGEST_DEGREE = 5
NUM_DATA = 1_000_000  # the data set of which the rows are a minibatch
TARGETS = {"full": 5.0, "diagonal": 100.0}  # points / harmonics at the largest M
BARE_TARGET = 1.5  # harmonics / bare with full q


class Structure(Benchmark):
    __doc__ = __doc__
    name = "structure"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 11")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for max_degree in [2] if arguments.short else [3, 4, 5]:
            for q in ("full", "diagonal"):
                for whiten in (True, False):
                    yield {
                        "max_degree": max_degree,
                        "q": q,
                        "whiten": whiten,
                        "rows": 1_024,
                        "rounds": arguments.rounds or (3 if arguments.short else 11),
                        "seed": 0,
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        step = {key: value for key, value in configuration.items() if key != "rounds"}
        factories: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
            side: (training_step, {"side": side, **step}) for side in ("points", "harmonics")
        }
        num_inducing = number_of_harmonics(INPUT_DIM + 1, configuration["max_degree"])
        if configuration["q"] == "full":
            bare = {"num_inducing": num_inducing, "rows": step["rows"], "seed": step["seed"]}
            factories["bare"] = (bare_products, bare)
        memory = {side: peak_bytes(make, **given) for side, (make, given) in factories.items()}
        samples = alternate(
            {side: make(**given) for side, (make, given) in factories.items()},
            rounds=configuration["rounds"],
            description="rounds",
        )
        ratios = {"points/harmonics": ratio(samples, "points", "harmonics")}
        if "bare" in samples:
            ratios["harmonics/bare"] = ratio(samples, "harmonics", "bare")
        return {
            "num_inducing": num_inducing,
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": ratios,
            "peak_bytes": memory,
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def number_of_harmonics(dimension: int, max_degree: int) -> int:
    """How many harmonics of degree 0 to `max_degree` the sphere in R^`dimension` has."""
    from math import comb

    def homogeneous(degree: int) -> int:
        return comb(degree + dimension - 1, dimension - 1) if degree >= 0 else 0

    return homogeneous(max_degree) + homogeneous(max_degree - 1)


def training_step(
    *, side: str, max_degree: int, q: str, whiten: bool, rows: int, seed: int
) -> Callable[[], Any]:
    """The traced elbo + gradient step of one side, on random rows."""
    import gpflow
    import tensorflow as tf

    from benchmarks._lib.graphs import elbo_and_gradient

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, INPUT_DIM))
    Y = generator.normal(size=(rows, 1))
    num_inducing = number_of_harmonics(INPUT_DIM + 1, max_degree)
    if side == "points":
        kernel = gpflow.kernels.Matern32(lengthscales=np.full(INPUT_DIM, 2.0))
        Z = generator.normal(size=(num_inducing, INPUT_DIM))
        inducing_variable = gpflow.inducing_variables.InducingPoints(Z)
    else:
        import interdomain as idm

        kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(INPUT_DIM))
        inducing_variable = idm.inducing_variables.SphericalHarmonics.for_kernel(
            kernel, INPUT_DIM, max_degree
        )
        if int(inducing_variable.num_inducing) != num_inducing:
            raise RuntimeError(
                f"{int(inducing_variable.num_inducing)} harmonics against {num_inducing} points"
            )
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(variance=0.1),
        inducing_variable,
        whiten=whiten,
        num_data=NUM_DATA,
        q_diag=q == "diagonal",
        **_variational_parameters(generator, num_inducing, q),
    )
    return elbo_and_gradient(model, (tf.constant(X), tf.constant(Y)))


def bare_products(num_inducing: int, rows: int, seed: int) -> Callable[[], Any]:
    """The traced products of a full q_sqrt [M, M] with K [M, rows], forward and backward."""
    import tensorflow as tf

    @tf.function
    def products(q_sqrt: tf.Tensor, K: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        A = tf.matmul(q_sqrt, K, transpose_a=True)
        # The gradient that arrives at A is a multiple of A itself, as A enters by its squares.
        return tf.reduce_sum(A), tf.matmul(K, A, transpose_b=True), tf.matmul(q_sqrt, A)

    generator = np.random.default_rng(seed)
    q_sqrt = tf.constant(np.tril(generator.normal(size=(num_inducing, num_inducing))))
    K = tf.constant(generator.normal(size=(num_inducing, rows)))
    products.get_concrete_function(q_sqrt, K)
    return lambda: products(q_sqrt, K)


def _variational_parameters(
    generator: np.random.Generator, num_inducing: int, q: str
) -> dict[str, Any]:
    """An arbitrary q: nothing about it is special, and its scales are those of a trained one."""
    q_mu = 0.1 * generator.normal(size=(num_inducing, 1))
    if q == "diagonal":
        return {"q_mu": q_mu, "q_sqrt": generator.uniform(0.1, 0.9, size=(num_inducing, 1))}
    noise = generator.normal(size=(num_inducing, num_inducing)) / num_inducing
    return {"q_mu": q_mu, "q_sqrt": (np.tril(noise) + 0.5 * np.eye(num_inducing))[None]}


def table_of(records: Sequence[Record]) -> str:
    rows = []
    for record in sorted(records, key=_position):
        run, result = record["configuration"], record["result"]
        seconds, memory, ratios = result["seconds"], result["peak_bytes"], result["ratios"]
        at_largest = run["max_degree"] == LARGEST_DEGREE
        gain, excess = ratios["points/harmonics"], ratios.get("harmonics/bare")
        verdicts = []
        if at_largest:
            target = TARGETS[run["q"]]
            verdicts.append(f">= {target:g}x: {_met(gain['median'] >= target)}")
        if at_largest and excess is not None:
            verdicts.append(f"bare <= {BARE_TARGET}x: {_met(excess['median'] <= BARE_TARGET)}")
        rows.append(
            (
                result["num_inducing"],
                run["q"],
                "yes" if run["whiten"] else "no",
                spread(seconds["points"]),
                spread(seconds["harmonics"]),
                spread(seconds["bare"]) if "bare" in seconds else "",
                spread(gain),
                "" if excess is None else spread(excess),
                "; ".join(verdicts),
                megabytes(memory["points"]),
                megabytes(memory["harmonics"]),
            )
        )
    headers = (
        *("M", "q", "whitened", "points s", "harmonics s", "bare s"),
        *("points/harmonics", "harmonics/bare", "target", "points MB", "harmonics MB"),
    )
    return (
        "elbo + gradient of an SVGP with 8 inputs and 1,024 rows: median [quartiles]; MB is the "
        "peak of one step.\n\n" + markdown(headers, rows)
    )


def _position(record: Record) -> tuple[int, bool, bool, int]:
    run = record["configuration"]
    return run["max_degree"], run["q"] == "diagonal", not run["whiten"], run["rounds"]


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"


if __name__ == "__main__":
    sys.exit(Structure().main())
