"""One training step of five outputs: this library's structure against GPflow's stock models.

elbo + gradient to every trainable variable, compiled, of gpflow's SVGP with a Gaussian likelihood,
8 inputs, 1,000 rows, 660 inducing variables, 5 outputs, float64. For each kernel of several outputs
(SharedIndependent, SeparateIndependent, LinearCoregionalization):
stock      InducingPoints in gpflow's SharedIndependentInducingVariables, Matern-3/2 kernels
harmonics  SphericalHarmonics, SphericalMatern32 kernels: in this library's wrapper for
           SharedIndependent, without a wrapper for the others
latent     the same harmonics with one kernel of one output and num_latent_gps=5

Times are seconds, median [quartiles] over rounds in which the sides take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import alternate, ratio, summarise

INPUT_DIM, NUM_OUTPUTS, NUM_ROWS, MAX_DEGREE = 8, 5, 1_000, 4
MIXINGS = ("shared", "separate", "coregionalised")
SIDES = ("stock", "harmonics", "latent")
TARGETS = {"full": 2.5, "diagonal": 20.0}  # stock / harmonics, but for shared kernels
SHARED_TARGET = 1.05  # harmonics / latent, for shared kernels: as quick, but for the noise


class SeveralOutputs(Benchmark):
    __doc__ = __doc__
    name = "several_outputs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 7")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for mixing in MIXINGS:
            for q in ("full", "diagonal"):
                yield {
                    "mixing": mixing,
                    "q": q,
                    "max_degree": 2 if arguments.short else MAX_DEGREE,
                    "rounds": arguments.rounds or (3 if arguments.short else 7),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        step = {key: value for key, value in configuration.items() if key != "rounds"}
        sides = {side: training_step(side=side, **step) for side in SIDES}
        samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {
                "stock/harmonics": ratio(samples, "stock", "harmonics"),
                "harmonics/latent": ratio(samples, "harmonics", "latent"),
            },
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def training_step(
    *, side: str, mixing: str, q: str, max_degree: int, seed: int
) -> Callable[[], Any]:
    """The traced elbo + gradient step of one side, on random rows."""
    import gpflow
    import tensorflow as tf

    import interdomain as idm
    from benchmarks._lib.graphs import elbo_and_gradient

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(NUM_ROWS, INPUT_DIM))
    Y = generator.normal(size=(NUM_ROWS, NUM_OUTPUTS))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(
        zonal(1.0), INPUT_DIM, max_degree
    )

    def finite_rank(scale: float) -> Any:
        return idm.kernels.FiniteRank(zonal(scale), harmonics)

    size = int(harmonics.num_inducing)
    if side == "stock":
        Z = generator.normal(size=(size, INPUT_DIM))
        inducing_variable = gpflow.inducing_variables.SharedIndependentInducingVariables(
            gpflow.inducing_variables.InducingPoints(Z)
        )
        kernel = several(points_kernel, mixing)
    elif side == "latent":
        inducing_variable, kernel = harmonics, finite_rank(1.0)
    else:
        inducing_variable, kernel = harmonics, several(finite_rank, mixing)
        if mixing == "shared":
            inducing_variable = idm.inducing_variables.SharedIndependentInducingVariables(harmonics)
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(variance=0.1),
        inducing_variable,
        num_latent_gps=NUM_OUTPUTS,
        q_diag=q == "diagonal",
        q_mu=0.1 * generator.normal(size=(size, NUM_OUTPUTS)),
        q_sqrt=root_of_q(generator, size, q),
    )
    return elbo_and_gradient(model, (tf.constant(X), tf.constant(Y)))


def zonal(scale: float) -> Any:
    """A kernel that harmonics belong to."""
    import interdomain as idm

    return idm.kernels.SphericalMatern32(weight_variances=np.full(INPUT_DIM, scale))


def points_kernel(scale: float) -> Any:
    """A stock kernel with one lengthscale for each input."""
    import gpflow

    return gpflow.kernels.Matern32(lengthscales=np.full(INPUT_DIM, 2.0 / scale))


def several(make: Callable[[float], Any], mixing: str) -> Any:
    """A kernel of five outputs."""
    import gpflow

    if mixing == "shared":
        return gpflow.kernels.SharedIndependent(make(1.0), NUM_OUTPUTS)
    kernels = [make(1.0 + 0.1 * k) for k in range(NUM_OUTPUTS)]
    if mixing == "separate":
        return gpflow.kernels.SeparateIndependent(kernels)
    W = np.random.default_rng(1).normal(size=(NUM_OUTPUTS, NUM_OUTPUTS))
    return gpflow.kernels.LinearCoregionalization(kernels, W=W)


def root_of_q(generator: np.random.Generator, size: int, q: str) -> Any:
    """The scales of a trained q; nothing else about it is special."""
    if q == "diagonal":
        return generator.uniform(0.1, 0.9, size=(size, NUM_OUTPUTS))
    noise = generator.normal(size=(NUM_OUTPUTS, size, size)) / size
    return np.tril(noise) + 0.5 * np.eye(size)


def table_of(records: Sequence[Record]) -> str:
    """A row for each kernel and form of q."""
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        gain, excess = (result["ratios"][name] for name in ("stock/harmonics", "harmonics/latent"))
        if run["mixing"] == "shared":
            verdict = f"harmonics/latent {SHARED_TARGET}: " + (
                "met" if excess["median"] <= SHARED_TARGET else "missed"
            )
        else:
            target = TARGETS[run["q"]]
            verdict = f"stock/harmonics {target}: {'met' if gain['median'] >= target else 'missed'}"
        rows.append(
            (
                run["mixing"],
                run["q"],
                *(spread(result["seconds"][side]) for side in SIDES),
                spread(gain),
                spread(excess),
                verdict,
            )
        )
    headers = ("kernel", "q", *SIDES, "stock/harmonics", "harmonics/latent", "target")
    return markdown(headers, rows)


if __name__ == "__main__":
    sys.exit(SeveralOutputs().main())
