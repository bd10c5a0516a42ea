"""One training step of a deep GP of two layers: layers of this library against GPflux's own.

Bound and gradient to every trainable variable, compiled, 1,000 rows, 8 inputs, 5 hidden outputs and
one output, Gaussian likelihood, float64, the same number M of inducing variables in every layer.
gpflux       GPflux's GPLayer, inducing points and a Matern-5/2 shared by the outputs
points       the same points and kernel in `deep.StructuredLayer`
harmonics    spherical harmonics of whole degrees, finite rank
activation   ReLU units, finite rank
GPflux has no diagonal q: its layers are timed with the full one beside both.

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

INPUT_DIM, HIDDEN, NUM_ROWS = 8, 5, 1_000
SIZES = (128, 512)
SIDES = ("gpflux", "points", "harmonics", "activation")


class DeepStep(Benchmark):
    __doc__ = __doc__
    name = "deep_step"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 7")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for size in (16,) if arguments.short else SIZES:
            for q in ("full", "diagonal"):
                yield {
                    "num_inducing": size,
                    "q": q,
                    "rows": 100 if arguments.short else NUM_ROWS,
                    "rounds": arguments.rounds or (2 if arguments.short else 7),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        step = {key: value for key, value in configuration.items() if key != "rounds"}
        sides = {side: training_step(side=side, **step) for side in SIDES}
        samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {side: ratio(samples, "gpflux", side) for side in SIDES[1:]},
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def training_step(
    *, side: str, num_inducing: int, q: str, rows: int, seed: int
) -> Callable[[], Any]:
    """The traced bound and its gradients, on random rows."""
    import gpflow
    import tensorflow as tf

    from interdomain import deep

    generator = np.random.default_rng(seed)
    X = tf.constant(generator.normal(size=(rows, INPUT_DIM)))
    Y = tf.constant(generator.normal(size=(rows, 1)))
    if side == "gpflux":
        model: Any = of_gpflux(X.numpy(), num_inducing)
    else:
        model = deep.build(
            X,
            widths=[HIDDEN, 1],
            features=side,
            num_inducing=num_inducing,
            kernel=matern if side == "points" else None,
            likelihood=gpflow.likelihoods.Gaussian(0.1),
            q_diag=q == "diagonal",
        )

    @tf.function(autograph=False)
    def step() -> Any:
        with tf.GradientTape() as tape:
            bound = model.elbo((X, Y))
        return bound, tape.gradient(bound, model.trainable_variables)

    return step


def matern(num_columns: int) -> Any:
    """A stock kernel with one lengthscale for each input."""
    import gpflow

    return gpflow.kernels.Matern52(lengthscales=np.full(num_columns, 2.0))


def of_gpflux(X: Any, num_inducing: int) -> Any:
    """The same two layers, as GPflux has them."""
    import gpflow
    import gpflux
    from gpflow.inducing_variables import InducingPoints, SharedIndependentInducingVariables
    from gpflow.kernels import SharedIndependent

    from interdomain.deep import identity_or_principal

    mean = identity_or_principal(X, HIDDEN)
    layers = []
    for width, rows, own_mean in (
        (HIDDEN, X, mean),
        (1, np.asarray(mean(X)), gpflow.mean_functions.Zero(output_dim=1)),
    ):
        Z = np.resize(rows, [num_inducing, rows.shape[1]])
        Z = Z + 0.1 * np.random.default_rng(0).normal(size=Z.shape)
        layer = gpflux.layers.GPLayer(
            SharedIndependent(matern(rows.shape[1]), width),
            SharedIndependentInducingVariables(InducingPoints(Z)),
            num_data=len(X),
            mean_function=own_mean,
            verbose=False,
        )
        layers.append(layer)
    return gpflux.models.DeepGP(layers, gpflow.likelihoods.Gaussian(0.1))


def table_of(records: Sequence[Record]) -> str:
    """Seconds of each side, and how many times as long GPflux takes."""
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        seconds = [spread(result["seconds"][side]) for side in SIDES]
        ratios = [f"{result['ratios'][side]['median']:.1f}" for side in SIDES[1:]]
        rows.append([run["num_inducing"], run["q"], *seconds, " / ".join(ratios)])
    return markdown(["M", "q", *SIDES, f"gpflux / {', '.join(SIDES[1:])}"], rows)


if __name__ == "__main__":
    sys.exit(DeepStep().main())
