"""GPyTorch's SVGP with the points, kernel and initial values of GPflow's SVGP."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2

from benchmarks._lib.race import Rows

BATCH_SIZE = 1_000
ROWS_FOR_CENTRES = 10_000
ROWS_AT_A_TIME = 2_000
LEARNING_RATE = 0.01


def trained(
    train: Rows, held_out: Rows, num_inducing: int, seconds: Sequence[float], *, classes: bool
) -> dict[str, Any]:
    """Train until the last of `seconds` of this process, and predict at each time; the clock does
    not count predictions.

    :param classes: whether targets are classes 0 and 1; otherwise they have Gaussian noise.
    """
    import gpytorch
    import torch

    torch.set_num_threads(1)  # Idle threads wait actively, which the clock would count.
    torch.manual_seed(0)
    started = time.process_time()
    X, Y = (torch.tensor(part, dtype=torch.float32) for part in (train[0], train[1][:, 0]))
    centres, _ = kmeans2(train[0][:ROWS_FOR_CENTRES], num_inducing, minit="points", seed=0)

    class SparseGP(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            points = torch.tensor(centres, dtype=torch.float32)
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, points, distribution, learn_inducing_locations=True
                )
            )
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=X.shape[1])
            kernel.lengthscale = X.shape[1] ** 0.5
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)
            self.covar_module.outputscale = 1.0

        def forward(self, inputs: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(inputs), self.covar_module(inputs)
            )

    model = SparseGP()
    if classes:
        likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    else:
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.noise = 0.1
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=LEARNING_RATE)
    draws = np.random.default_rng(0)
    apart, trace, startup = 0.0, [], None
    for budget in seconds:
        while time.process_time() - started - apart < budget:
            rows = torch.tensor(draws.integers(len(X), size=min(BATCH_SIZE, len(X))))
            optimizer.zero_grad()
            loss = -bound(model(X[rows]), Y[rows])
            loss.backward()
            optimizer.step()
            if startup is None:
                startup = time.process_time() - started
        now = time.process_time()
        errors = _errors(model, likelihood, held_out, classes)
        trace.append({"seconds": now - started - apart, **errors})
        apart += time.process_time() - now
    return {"trace": trace, "startup_seconds": startup, "error": None}


def _errors(model: Any, likelihood: Any, held_out: Rows, classes: bool) -> dict[str, float]:
    import torch

    X, Y = (torch.tensor(part) for part in (held_out[0], held_out[1][:, 0]))
    means, densities = [], []
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        for start in range(0, len(X), ROWS_AT_A_TIME):
            some = slice(start, start + ROWS_AT_A_TIME)
            predicted = likelihood(model(X[some].float()))
            if classes:
                mean = predicted.probs.double()
                right = torch.where(Y[some] > 0.5, mean, 1 - mean)
                density = torch.log(right.clamp(1e-12))
            else:
                mean = predicted.mean.double()
                noisy = torch.distributions.Normal(mean, predicted.variance.double().sqrt())
                density = noisy.log_prob(Y[some])
            means.append(mean)
            densities.append(density)
    model.train()
    likelihood.train()
    error = torch.cat(means) - Y
    return {
        "log_density": float(torch.cat(densities).mean()),
        "rmse": float(error.square().mean().sqrt()),
    }
