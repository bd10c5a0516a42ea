"""A training step with orthogonally decoupled variables against an SVGP with all of them.

elbo + gradient to every trainable variable, compiled, Gaussian likelihood, full whitened q's,
1,000 rows as a minibatch of a million, 4 inputs, float64:
svgp M       gpflow's SVGP with M points under gpflow's Matern-5/2;
svgp 2M      the same with 2M points: as many variables as those below;
points       OrthogonalSVGP with M points as base and M orthogonal points, the same kernel;
odvgp        the same with variant="odvgp";
harmonics    about M spherical harmonics as base and M orthogonal points under ArcCosine(1);
activations  M ReLU features as base and M orthogonal points under ArcCosine(1).

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
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, ratio, summarise

INPUT_DIM = 4
ROWS = 1_000
NUM_DATA = 1_000_000  # the data set of which the rows are a minibatch
SVGP, SVGP_LARGE = "svgp M", "svgp 2M"
POINTS, ODVGP, HARMONICS, ACTIVATIONS = "points", "odvgp", "harmonics", "activations"
SIDES = (SVGP, SVGP_LARGE, POINTS, ODVGP, HARMONICS, ACTIVATIONS)
SIZES = (256, 512, 1_024)
TARGETS = {POINTS: 0.65, HARMONICS: 0.35}  # of svgp 2M, at the largest M


class Orthogonal(Benchmark):
    __doc__ = __doc__
    name = "orthogonal"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 11")
        parser.add_argument("--sides", type=names(SIDES, "sides"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for num_inducing in [64] if arguments.short else SIZES:
            yield {
                "num_inducing": num_inducing,
                "rows": ROWS,
                "sides": list(arguments.sides or SIDES),
                "rounds": arguments.rounds or (3 if arguments.short else 11),
                "seed": 0,
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {key: configuration[key] for key in ("num_inducing", "rows", "seed")}
        sides = configuration["sides"]
        memory = {side: peak_bytes(training_step, side=side, **given) for side in sides}
        samples = alternate(
            {side: training_step(side=side, **given) for side in sides},
            rounds=configuration["rounds"],
            description=f"M = {configuration['num_inducing']}",
        )
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {
                f"{side}/{rival}": ratio(samples, side, rival)
                for rival in (SVGP, SVGP_LARGE)
                for side in sides
                if rival in samples and side != rival
            },
            "peak_bytes": memory,
            "num_harmonics": number_of_harmonics(configuration["num_inducing"]),
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


# M: the highest degree of as many harmonics of ArcCosine(1) as come nearest in five dimensions.
MAX_DEGREES = {64: 4, 256: 6, 512: 8, 1_024: 10}


def number_of_harmonics(num_inducing: int) -> int:
    """As many as the base of the side "harmonics" has."""
    return int(build_model(HARMONICS, num_inducing, seed=0).inducing_variable.num_inducing)


def training_step(*, side: str, num_inducing: int, rows: int, seed: int) -> Callable[[], Any]:
    """The traced elbo + gradient step of one side, on random rows."""
    import tensorflow as tf

    from benchmarks._lib.graphs import elbo_and_gradient

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, INPUT_DIM))
    Y = generator.normal(size=(rows, 1))
    return elbo_and_gradient(
        build_model(side, num_inducing, seed), (tf.constant(X), tf.constant(Y))
    )


def build_model(side: str, num_inducing: int, seed: int) -> Any:
    """The model of one side at its initial parameters."""
    import gpflow
    from gpflow.inducing_variables import InducingPoints

    import interdomain as idm

    generator = np.random.default_rng(seed + 1)
    Z = generator.normal(size=(2 * num_inducing, INPUT_DIM))
    likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
    kernel: gpflow.kernels.Kernel
    if side in (HARMONICS, ACTIVATIONS):
        kernel = idm.kernels.ArcCosine(1, weight_variances=np.ones(INPUT_DIM))
        base: gpflow.inducing_variables.InducingVariables
        degree = MAX_DEGREES[num_inducing]
        if side == HARMONICS:
            base = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, INPUT_DIM, degree)
        else:
            base = idm.inducing_variables.ActivationFeatures.random(
                INPUT_DIM, num_inducing, "relu", degree + 2, seed=seed
            )
    else:
        kernel = gpflow.kernels.Matern52(lengthscales=np.ones(INPUT_DIM))
        size = num_inducing if side != SVGP_LARGE else 2 * num_inducing
        base = InducingPoints(Z[:size])
    if side in (SVGP, SVGP_LARGE):
        return gpflow.models.SVGP(kernel, likelihood, base, num_data=NUM_DATA)
    return idm.models.OrthogonalSVGP(
        kernel,
        likelihood,
        base,
        InducingPoints(Z[num_inducing:]),
        variant="odvgp" if side == ODVGP else "solve",
        num_data=NUM_DATA,
    )


def table_of(records: Sequence[Record]) -> str:
    rows = []
    for record in sorted(records, key=lambda record: record["configuration"]["num_inducing"]):
        run, result = record["configuration"], record["result"]
        for side in run["sides"]:
            of_large = result["ratios"].get(f"{side}/{SVGP_LARGE}")
            of_small = result["ratios"].get(f"{side}/{SVGP}")
            target = TARGETS.get(side) if run["num_inducing"] == SIZES[-1] else None
            verdict = ""
            if target is not None and of_large is not None:
                met = "met" if of_large["median"] <= target else "NOT met"
                verdict = f"<= {target}: {met}"
            size = run["num_inducing"]
            if side == HARMONICS:
                size = f"{result['num_harmonics']} + {size}"
            rows.append(
                (
                    size,
                    side,
                    spread(result["seconds"][side]),
                    "" if of_small is None else spread(of_small),
                    "" if of_large is None else spread(of_large),
                    verdict,
                    megabytes(result["peak_bytes"][side]),
                )
            )
    headers = ("M", "side", "seconds", f"of {SVGP}", f"of {SVGP_LARGE}", "target", "MB")
    return (
        f"elbo + gradient, {ROWS:,} rows: median [quartiles]; MB is the peak of one step.\n\n"
        + markdown(headers, rows)
    )


if __name__ == "__main__":
    sys.exit(Orthogonal().main())
