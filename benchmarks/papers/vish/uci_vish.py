"""VISH's Table 1: UCI regression, test MSE and NLPD on normalised data (lower is better).

All methods have a Matern-3/2 kernel with one scale per input. L-BFGS trains every parameter, except
for minibatches:
vish  gpflow's SGPR with SphericalHarmonics and SphericalMatern32, the paper's M.
vish_log
      vish with the tighter bound, charge="log" of StructuredSGPR.
vish_truncated
      vish with the kernel of finite rank that the harmonics represent completely. We infer that the
      paper's figures are those of this model (see README.md), so both are compared.
svgp  gpflow's SVGP with as many inducing points, full batch, L-BFGS over kernel, noise, inducing
      points and q together, as in the paper; q starts at its optimum for the initial kernel.
minibatch, minibatch_log
      SVGP with 100 points, with GPflow's bound and with charge="log" of SVGP. Steps of natural
      gradients of 0.1 and Adam 0.01 on 256 rows (half of the rows if there are fewer than 512).
gpr   exact regression, if there are at most 2,000 rows.
"""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import load_table, source_of
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.regression import fit_by_lbfgs, inducing_points, test_errors, vish_model
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks.papers.vish.vish_table import SIZES, accuracy_table

MINIBATCH = ("minibatch", "minibatch_log")
METHODS = ("vish", "vish_log", "vish_truncated", "svgp", *MINIBATCH, "gpr")

NUM_POINTS = 100
"""Inducing points of the models that are trained by minibatches."""


class UciVish(
    Benchmark, data_dir=str, datasets=SIZES, methods=METHODS, splits=range, max_iterations=int
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for dataset in arguments.datasets or (["yacht"] if short else list(SIZES)):
            for method in arguments.methods or METHODS:
                if method == "gpr" and dataset in ("kin8nm", "power"):
                    continue  # too many rows
                for split in arguments.splits or ([0] if short else range(5)):
                    yield {
                        "dataset": dataset,
                        "method": method,
                        "split": split,
                        "seed": split,
                        "max_iterations": arguments.max_iterations or (50 if short else 2_000),
                        "source": source_of(arguments.data_dir),
                    }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        table = load_table(configuration["dataset"], arguments.data_dir)
        split = normalise(take_split(table, configuration["split"]))
        num_inducing, max_degree = SIZES[configuration["dataset"]]
        start = time.perf_counter()
        model = build_model(
            configuration["method"], split, num_inducing, max_degree, configuration["seed"]
        )
        rows, steps = (split.X_train, split.Y_train), configuration["max_iterations"]
        if configuration["method"] in MINIBATCH:
            outcome = idm.fit(
                model,
                rows,
                steps=steps,
                batch_size=min(256, len(rows[0]) // 2),
                optimizer=(gpflow.optimizers.NaturalGradient(0.1), 0.01),
            )
            fit = {"objective": float(model.elbo(rows)), "iterations": outcome.steps}
            fit |= {"converged": False, "ended": outcome.message, "num_inducing": NUM_POINTS}
        else:
            data = rows if configuration["method"] == "svgp" else None
            fit = fit_by_lbfgs(model, data, steps)
        seconds = time.perf_counter() - start
        return {**test_errors(model, split), **fit, "fit_seconds": round(seconds, 2)}

    def table(self, records: Records) -> str:
        return accuracy_table(records, METHODS)


def build_model(
    method: str, split: NormalisedSplit, num_inducing: int, max_degree: int, seed: int
) -> Any:
    """The model of a method at its initial parameters: unit scales, noise variance 0.1."""
    data = (split.X_train, split.Y_train)
    num_rows, input_dim = split.X_train.shape
    if method.startswith("vish"):
        model = vish_model(data, num_inducing, max_degree, truncated=method == "vish_truncated")
        if method != "vish_log":
            return model
        parts = model.kernel, model.inducing_variable
        noise = model.likelihood
        return idm.models.StructuredSGPR(data, *parts, likelihood=noise, charge="log")

    kernel = gpflow.kernels.Matern32(lengthscales=np.ones(input_dim))
    if method == "gpr":
        return gpflow.models.GPR(data, kernel, noise_variance=0.1)
    if method in MINIBATCH:
        Z = inducing_points(split.X_train, NUM_POINTS, seed)
        q = idm.models.JointQ(kernel, gpflow.inducing_variables.InducingPoints(Z))
        likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
        charge = "log" if method == "minibatch_log" else "trace"
        return idm.models.SVGP(kernel, likelihood, q, num_data=num_rows, charge=charge)
    Z = inducing_points(split.X_train, num_inducing, seed)
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(variance=0.1),
        gpflow.inducing_variables.InducingPoints(Z),
        num_data=num_rows,
    )
    OptimalQ(model, data).assign_q()
    gpflow.set_trainable([model.q_mu, model.q_sqrt], True)
    return model


if __name__ == "__main__":
    UciVish.command()
