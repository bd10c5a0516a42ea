"""One training step of HVGP with T x m inducing points, compared with SVGP with T*m points.

The step is elbo + gradient to every trainable variable, whitened, full q, Gaussian likelihood, 8
inputs, 1,000 rows, m = 250, Matern-3/2 with one lengthscale, float64. The T = 4, 8, 16 components
come from the negation of 2, 3, 4 groups of principal directions.
svgp m, svgp Tm     gpflow's SVGP with m and with T*m inducing points.
hvgp shared         HVGP whose components share m inducing points.
hvgp distinct       HVGP with m inducing points for each component.
coregionalization   gpflow's LinearCoregionalization and SeparateIndependentInducingVariables over
                    these components (only T = 4 and 8: it takes half a minute to trace).
gpytorch Tm         GPyTorch's SVGP with T*m inducing points, if it is installed.

Measures: time, peak memory of a step, and tracing (the first `get_concrete_function` of a fresh
process, and the operations in its graph). Times are seconds, median [quartiles] over rounds in
which the sides take turns.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import megabytes, spread, tabulated
from benchmarks._lib.timing import alternate, ratio, summarise

MEASURES = ("tracing", "memory", "time")
SVGP, SVGP_LARGE = "svgp m", "svgp Tm"
SHARED, DISTINCT = "hvgp shared", "hvgp distinct"
COREGIONALIZATION, GPYTORCH = "coregionalization", "gpytorch Tm"
SIDES = (SVGP, SVGP_LARGE, SHARED, DISTINCT, COREGIONALIZATION, GPYTORCH)
INPUT_DIM = 8
NUM_DATA = 1_000_000  # rows of the data set; the 1,000 rows are a minibatch of it
LENGTHSCALE = 2.0
NOISE_VARIANCE = 0.1


class HvgpScaling(Benchmark, measures=MEASURES, components=range, rounds=int):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for components in arguments.components or ([2] if short else [4, 8, 16]):
            sides = [SVGP, SVGP_LARGE, SHARED, DISTINCT]
            if components <= 8 and not short:
                sides.append(COREGIONALIZATION)
            rivals = [GPYTORCH] if importlib.util.find_spec("gpytorch") else []
            for measure in arguments.measures or MEASURES:
                measured = sides + (rivals if measure != "tracing" else [])
                run = {
                    "measure": measure,
                    "components": components,
                    "num_inducing": 20 if short else 250,
                    "rows": 100 if short else 1_000,
                    "seed": 0,
                    "sides": ",".join(measured),
                }
                if measure == "time":
                    run["rounds"] = arguments.rounds or (
                        3 if short else 5 if components > 8 else 11
                    )
                yield run

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        size = {key: configuration[key] for key in ("components", "num_inducing", "rows", "seed")}
        sides, measure = configuration["sides"].split(","), configuration["measure"]
        if measure == "tracing":
            return {"tracing": {side: from_child(traced, side=side, **size) for side in sides}}
        if measure == "memory":
            step = training_step
            return {"peak_bytes": {side: peak_bytes(step, side=side, **size) for side in sides}}
        samples = alternate(
            {side: training_step(side=side, **size) for side in sides},
            rounds=configuration["rounds"],
            description="rounds",
        )
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {side: ratio(samples, SVGP_LARGE, side) for side in sides},
        }

    def table(self, records: Records) -> str:
        """One row for each size and side."""
        names, rows = ("components", "num_inducing", "rows"), dict[tuple[int, ...], Entries]()
        newest = {
            (*(run[name] for name in names), run["measure"]): (run, result)
            for run, result in runs(sorted(records, key=lambda one: str(one["finished_at"])))
        }
        for run, result in newest.values():
            for side in run["sides"].split(","):
                place = (*(run[name] for name in names), SIDES.index(side))
                row = rows.setdefault(place, {name: run[name] for name in names} | {"side": side})
                if run["measure"] == "time":
                    row["step"] = spread(result["seconds"][side])
                    row["ratio"] = spread(result["ratios"][side])
                elif run["measure"] == "memory":
                    row["peak"] = megabytes(result["peak_bytes"][side])
                else:
                    row |= result["tracing"][side]
        return (
            "elbo + gradient: median [quartiles]; MB is the peak of one step; tracing in a fresh "
            "process.\n\n"
            + tabulated(
                (row for _, row in sorted(rows.items(), key=lambda one: one[0])),
                "T = components; m = num_inducing; rows; side; step s = step; "
                "svgp Tm / side = ratio; MB = peak; tracing s = seconds .1f; "
                "operations = operations ,.0f",
            )
        )


def random_rows(count: int, seed: int) -> tuple[Array, Array]:
    """Inputs and outputs without structure: the time of a step does not depend on them."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, INPUT_DIM)), generator.normal(size=(count, 1))


def training_step(
    *, side: str, components: int, num_inducing: int, rows: int, seed: int
) -> Callable[[], Any]:
    """The elbo + gradient step of one side, traced if it has a graph."""
    data = random_rows(rows, seed)
    if side == GPYTORCH:
        return gpytorch_step(*data, random_rows(components * num_inducing, seed + 1)[0])
    X, Y = map(tf.constant, data)
    step = gradient_step(build_model(side, components, num_inducing, seed))
    step.get_concrete_function(X, Y)
    return lambda: step(X, Y)


def traced(
    *, side: str, components: int, num_inducing: int, rows: int, seed: int
) -> dict[str, float]:
    """Seconds to trace the step, and the operations in its graph; run it in a fresh process."""
    step = gradient_step(build_model(side, components, num_inducing, seed))
    data, start = list(map(tf.constant, random_rows(rows, seed))), time.perf_counter()
    graph = step.get_concrete_function(*data).graph
    seconds, definition = time.perf_counter() - start, graph.as_graph_def()
    operations = len(definition.node) + sum(len(f.node_def) for f in definition.library.function)
    return {"seconds": seconds, "operations": operations}


def gradient_step(model: Any) -> Any:
    """An untraced `tf.function` of (X, Y): the loss and the gradients of all parameters."""
    variables = model.trainable_variables

    @tf.function
    def step(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss((X, Y))
        return loss, tape.gradient(loss, variables, unconnected_gradients="zero")

    return step


def build_model(side: str, components: int, num_inducing: int, seed: int) -> Any:
    """The GPflow model of one side at its initial parameters."""
    kernel = gpflow.kernels.Matern32(lengthscales=LENGTHSCALE)
    likelihood = gpflow.likelihoods.Gaussian(variance=NOISE_VARIANCE)
    points, _ = random_rows(components * num_inducing, seed + 1)
    if side in (SVGP, SVGP_LARGE):
        Z = points[:num_inducing] if side == SVGP else points
        return gpflow.models.SVGP(kernel, likelihood, Z, num_data=NUM_DATA)
    transforms = idm.transforms.PrincipalNegation.from_data(
        random_rows(1_000, seed + 2)[0], components.bit_length() - 1
    )
    blocks = points.reshape(components, num_inducing, INPUT_DIM)
    if side != COREGIONALIZATION:
        Z = blocks[0] if side == SHARED else blocks
        return idm.models.HVGP(kernel, likelihood, Z, transforms, num_data=NUM_DATA)
    # GPflow's model for a sum of kernels with their own inducing points: the components are latent
    # GPs, which a row of ones adds up to one output.
    parts = list(idm.kernels.HarmonicKernel(kernel, transforms).kernels)
    variables = [gpflow.inducing_variables.InducingPoints(block) for block in blocks]
    return gpflow.models.SVGP(
        gpflow.kernels.LinearCoregionalization(parts, W=np.ones((1, components))),
        likelihood,
        gpflow.inducing_variables.SeparateIndependentInducingVariables(variables),
        num_latent_gps=components,
        num_data=NUM_DATA,
    )


def gpytorch_step(X: Array, Y: Array, Z: Array) -> Callable[[], Any]:
    """The call that computes minus the ELBO of gpflow's SVGP, and its gradient."""
    import gpytorch
    import torch

    class SparseGP(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, torch.tensor(Z), distribution, learn_inducing_locations=True
                )
            )
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

        def forward(self, inputs: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(inputs), self.covar_module(inputs)
            )

    model, likelihood = SparseGP().double(), gpytorch.likelihoods.GaussianLikelihood().double()
    model.covar_module.outputscale = 1.0
    model.covar_module.base_kernel.lengthscale = LENGTHSCALE
    likelihood.noise = NOISE_VARIANCE
    model.variational_strategy.variational_params_initialized.fill_(1)  # otherwise q is redrawn
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=NUM_DATA)
    parameters = [*model.parameters(), *likelihood.parameters()]
    inputs, outputs = torch.tensor(X), torch.tensor(Y[:, 0])
    model.train()
    likelihood.train()

    def step() -> Any:
        for parameter in parameters:
            parameter.grad = None
        loss = -NUM_DATA * bound(model(inputs), outputs)
        loss.backward()
        return loss.detach()

    return step


if __name__ == "__main__":
    HvgpScaling.command()
