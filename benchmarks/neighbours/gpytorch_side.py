"""GPyTorch's NNVariationalStrategy: a variable for each row, and the nearest rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib.race import Rows

SECONDS = 200.0


def trained(train: Rows, X_test: Any, lengthscale: float) -> tuple[Any, Any, int]:
    """The means and variances at test rows, and the number of steps.

    :param lengthscale: the initial lengthscale of each column.
    """
    import gpytorch as gpt
    import torch

    torch.set_num_threads(1)  # idle threads wait actively, which the clock would count
    torch.manual_seed(0)
    started, (X, Y) = time.process_time(), train
    places, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(Y[:, 0]).float()

    class NearestNeighbourGP(gpt.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            q = gpt.variational.MeanFieldVariationalDistribution(len(places))
            super().__init__(
                gpt.variational.NNVariationalStrategy(
                    self, places, q, k=30, training_batch_size=256
                )
            )
            self.mean_module = gpt.means.ConstantMean()
            kernel = gpt.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            kernel.lengthscale = lengthscale
            self.covar_module = gpt.kernels.ScaleKernel(kernel)

        def forward(self, inputs: Any) -> Any:
            mean, covariance = self.mean_module(inputs), self.covar_module(inputs)
            return gpt.distributions.MultivariateNormal(mean, covariance)

        def __call__(self, inputs: Any, prior: bool = False, **more: Any) -> Any:
            return self.variational_strategy(x=inputs, prior=prior, **more)

    model, likelihood = NearestNeighbourGP(), gpt.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.1
    bound = gpt.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    steps = 0
    while time.process_time() - started < SECONDS:
        optimizer.zero_grad()
        output = model(None)
        loss = -bound(output, targets[model.variational_strategy.current_training_indices])
        loss.backward()
        optimizer.step()
        steps += 1
    model.eval()
    likelihood.eval()
    parts = np.array_split(X_test, max(1, len(X_test) // 500))
    with torch.no_grad():
        found = [likelihood(model(torch.tensor(part).float())) for part in parts]
    mean, variance = (
        np.concatenate([getattr(each, name).double().numpy() for each in found])
        for name in ("mean", "variance")
    )
    return mean, variance, steps
