"""Published answers of R's mgcv and of Stan, compared with models of this library.

mgcv_gaussian    StructuredSGPR and DualSVGP: equal up to rounding.
mgcv_poisson     DualSVGP: mgcv has Laplace's approximation, DualSVGP an averaged Gaussian.
stan_regression  StructuredSGPR of 11 rows: evidence and f at Stan's mean hyperparameters, then
                 Hamiltonian Monte Carlo. z is a difference in Monte Carlo errors of both sides.
stan_counts      DualSVGP and Laplace's approximation of 11 counts, averaged over Stan's draws of
                 the hyperparameters.
stan_motorcycle  SVGP of 133 rows with latent GPs for the mean and the logarithm of the noise.
Differences from mgcv are in its standard errors, and biases from Stan in its standard deviations.
Ratios are deviations of this library divided by Stan's.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks._lib.data import for_a_process, source_of
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import markdown
from benchmarks.referees.mgcv import mgcv_gaussian, mgcv_poisson
from benchmarks.referees.stan import stan_counts, stan_motorcycle, stan_regression

FUNCTIONS = (mgcv_gaussian, mgcv_poisson, stan_regression, stan_counts, stan_motorcycle)
REFEREES: dict[str, Callable[..., dict[str, float]]] = {f.__name__: f for f in FUNCTIONS}
DRAWS = {"stan_regression": 5_000, "stan_counts": 250, "stan_motorcycle": 300}
"""Draws of the chain here, or of hyperparameters; a short run has a hundredth of them."""


class Referees(Benchmark, data_dir=str, referees=REFEREES):
    def configurations(self, arguments: Arguments) -> Configurations:
        for referee in arguments.referees or (list(REFEREES)[:1] if arguments.short else REFEREES):
            draws = DRAWS.get(referee, 0) // (100 if arguments.short else 1)
            more = {"draws": draws} if draws else {}
            yield {"referee": referee, **more, "source": source_of(arguments.data_dir)}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        return REFEREES[given.pop("referee")](**given)

    def table(self, records: Records) -> str:
        rows = [
            (run["referee"], name.replace("_", " "), f"{value:.2g}")
            for run, result in runs(records)
            for name, value in result.items()
        ]
        return markdown(("referee", "what", "figure"), rows)
