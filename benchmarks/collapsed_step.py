"""One training step of the collapsed bound against bare LAPACK: how far from its floor?

elbo + gradient to every trainable variable, compiled, of StructuredSGPR with spherical harmonics of
two inputs (whole degrees: M = 22^2, 32^2, 45^2, 63^2), SphericalMatern32, frozen features, one
output, 1,000 rows, which no step reads. Sides:
step        as the library has it
LAPACK      potrf and trtri alone, of a matrix of the same size, in place

Times are seconds, median [quartiles] over rounds in which the sides take turns. LAPACK's include a
copy of the matrix, as it is overwritten. Peak memory, each side in a process of its own, is in
units of M^2 numbers of float64, beyond the sums.

SciPy's LAPACK (OpenBLAS) waits for its threads by spinning. On a machine that is busy otherwise a
factorisation then takes seconds; compare with OPENBLAS_NUM_THREADS=1 there, which is noted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import alternate, ratio, summarise

NUM_ROWS, NUM_INPUTS = 1_000, 2
NUM_DEGREES = (22, 32, 45, 63)
SIDES = ("step", "LAPACK")
TARGET = 1.5  # step / LAPACK


class CollapsedStep(Benchmark):
    __doc__ = __doc__
    name = "collapsed_step"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 9")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for num_degrees in (5, 10) if arguments.short else NUM_DEGREES:
            yield {
                "num_degrees": num_degrees,
                "rounds": arguments.rounds or (3 if arguments.short else 9),
                "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"),
                "seed": 0,
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        work = {key: configuration[key] for key in ("num_degrees", "seed")}
        peaks = {side: peak_bytes(call_of, side=side, **work) for side in SIDES}
        sides = {side: call_of(side=side, **work) for side in SIDES}
        samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
        return {
            "num_inducing": configuration["num_degrees"] ** 2,
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {side: ratio(samples, side, "LAPACK") for side in SIDES},
            "peak_bytes": peaks,
        }

    def table(self, records: Sequence[Record]) -> str:
        """A row for each number of harmonics."""
        rows = []
        for record in records:
            result = record["result"]
            numbers = 8 * result["num_inducing"] ** 2
            excess = result["ratios"]["step"]
            rows.append(
                (
                    result["num_inducing"],
                    record["configuration"]["blas_threads"],
                    *(spread(result["seconds"][side]) for side in SIDES),
                    spread(excess),
                    f"{TARGET}: {'met' if excess['median'] <= TARGET else 'missed'}",
                    *(f"{result['peak_bytes'][side] / numbers:.1f}" for side in SIDES),
                )
            )
        memory = (f"memory: {side}" for side in SIDES)
        return markdown(("M", "threads", *SIDES, "step/LAPACK", "target", *memory), rows)


def call_of(*, side: str, num_degrees: int, seed: int) -> Callable[[], Any]:
    """The work of one side, traced where there is a graph."""
    if side == "LAPACK":
        return bare_lapack(num_degrees**2, seed)
    import tensorflow as tf

    from benchmarks._lib.graphs import elbo_and_gradient

    return elbo_and_gradient(model_of(num_degrees, seed), (tf.zeros([0]), tf.zeros([0])))


def bare_lapack(size: int, seed: int) -> Callable[[], Any]:
    from scipy.linalg import lapack

    A = np.random.default_rng(seed).normal(size=(size, size))
    matrix = np.asfortranarray(np.eye(size) + A @ A.T / size)
    buffer = np.empty_like(matrix)

    def factorise_and_invert() -> None:
        np.copyto(buffer, matrix)
        lapack.dpotrf(buffer, lower=1, clean=0, overwrite_a=1)
        lapack.dtrtri(buffer, lower=1, overwrite_c=1)

    return factorise_and_invert


def model_of(num_degrees: int, seed: int) -> Any:
    """After its only pass over the rows."""
    import gpflow

    import interdomain as idm

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(NUM_ROWS, NUM_INPUTS))
    Y = np.sin(3 * X[:, :1]) + 0.1 * generator.normal(size=(NUM_ROWS, 1))
    max_degree = num_degrees - 1
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(NUM_INPUTS))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, NUM_INPUTS, max_degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.1, progress=False)
    for parameter in model.feature_parameters.values():
        gpflow.set_trainable(parameter, False)
    model.elbo()
    return model


if __name__ == "__main__":
    sys.exit(CollapsedStep().main())
