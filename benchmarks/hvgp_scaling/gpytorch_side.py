"""GPyTorch's SVGP, built to compute what gpflow's SVGP in `sides.py` computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._lib.data import Array
from benchmarks.hvgp_scaling.problem import LENGTHSCALE, NOISE_VARIANCE, NUM_DATA


def gpytorch_step(
    X: Array, Y: Array, Z: Array, q: tuple[Array, Array] | None = None
) -> Callable[[], Any]:
    """The call that computes the loss (minus the ELBO) and its gradient to every parameter.

    float64; whitened, full q; Matern-3/2 with one lengthscale; no mean function.

    :param q: mean [M] and lower triangular root [M, M] of q; zero and identity if not given.
    """
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
    strategy = model.variational_strategy
    strategy.variational_params_initialized.fill_(1)  # or the first call draws a mean at random
    if q is not None:
        distribution = strategy._variational_distribution
        with torch.no_grad():
            distribution.variational_mean.copy_(torch.tensor(q[0]))
            distribution.chol_variational_covar.copy_(torch.tensor(q[1]))
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
