"""Banana classification by the number of spherical harmonics (Dutordoir et al. 2020, Figure 5).

VISH with all harmonics up to degree 2, 14 and 27 (M = 9, 225 and 784, the paper's), and degrees
between: `DualSVGP` by `fit`, Bernoulli likelihood, SphericalMatern32 with a scale
for each input, 400 training rows, 4,900 test rows, inputs standardised.
full        the prior of the paper: the bound pays for the degrees above the highest
fixed       full, under the kernel that training with the highest degree of all has found: the same
            prior for all degrees, so that every harmonic can only raise the bound
vgp         gpflow's VGP, the exact prior at all training rows, under the `fixed` kernel: the limit

The picture, banana_degree.png, has the paper's Figures 3 and 4: how much of the prior variance each
product of two columns' waves (VFF) has, and each harmonic; a line is drawn around 49 of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import source_of
from benchmarks._lib.mixed_tables import banana
from benchmarks._lib.prediction import class_errors
from benchmarks._lib.race import Rows
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Records
from benchmarks._lib.tables import tabulated

PRIORS = ("full", "fixed")
LIMIT = "vgp"
DEGREES = (2, 4, 6, 10, 14, 20, 27)
PAPER = (2, 14, 27)


class BananaDegree(Benchmark, data_dir=str, priors=PRIORS, degrees=range):
    def configurations(self, arguments: Arguments) -> Configurations:
        degrees = arguments.degrees or ((2, 4) if arguments.short else DEGREES)
        for prior in arguments.priors or PRIORS:
            for some in [degrees] if prior == "fixed" else [[degree] for degree in degrees]:
                yield {
                    "prior": prior,
                    "degrees": list(some),
                    "source": source_of(arguments.data_dir),
                }

    def table(self, records: Records) -> str:
        """A row for each prior and degree, and whether bounds rise with the degree."""
        order = (*PRIORS, LIMIT)
        fits = [fit for record in records for fit in record["result"]["fits"]]
        fits.sort(key=lambda fit: (order.index(fit["prior"]), fit["degree"]))
        rows = []
        for fit in fits:
            row = {**fit, "error": 100 * (1 - fit["accuracy"])}
            if fit["prior"] == LIMIT:
                row["degree"] = "all rows"
            else:
                row["M"] = (fit["degree"] + 1) ** 2
                row["paper"] = "yes" if fit["degree"] in PAPER else ""
            rows.append(row)
        layout = (
            "prior; highest degree = degree; M; in the paper = paper; bound = elbo .2f; "
            "error % = error .2f; NLPD = nll .4f; CPU s = seconds .1f"
        )
        lines = [tabulated(rows, layout)]
        for prior in ("full", "fixed"):
            bounds = [fit["elbo"] for fit in fits if fit["prior"] == prior]
            if len(bounds) > 1:
                least = min(np.diff(bounds))
                lines.append(
                    f"{prior}: the bound rises with the degree: "
                    f"{'yes' if least >= -0.01 else 'no'} (the least rise is {least:.3f})"
                )
        return "\n\n".join(lines)

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """The paper's Figures 3 and 4."""
        from matplotlib.figure import Figure

        waves, harmonics = shares_of_variables()
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        panels = (
            (waves, "waves of x1", "waves of x2", [(6.5, -0.5), (6.5, 6.5), (-0.5, 6.5)]),
            (harmonics, "order", "degree", [(-0.5, 6.5), (12.5, 6.5)]),
        )
        for axis, (shares, across, down, line) in zip(figure.subplots(1, 2), panels, strict=True):
            image = axis.imshow(np.log10(shares), vmin=-8, vmax=-0.5, aspect="auto")
            axis.plot(*np.transpose(line), "r--")
            axis.set(xlabel=across, ylabel=down)
        figure.colorbar(image, label="log10 of the share of the prior variance")
        figure.savefig(folder / "banana_degree.png", dpi=70)


def shares_of_variables() -> tuple[Any, Any]:
    """The shares of the prior variance of products of two columns' waves ``[13, 13]``, and of
    harmonics by degree and order ``[10, 19]``, where NaN stands for none. Initial Matern-3/2
    kernels; waves of the interval [-1, 1]."""
    waves = idm.inducing_variables.VariationalFourierFeatures(-1, 1, 6, polynomial_degree=0)
    kernel = gpflow.kernels.Matern32()
    variances = 1 / np.diagonal(gpflow.covariances.Kuu(waves, kernel))
    # One cosine, then cosine and sine of each frequency.
    variances = variances[[0, *np.arange(1, 13).reshape(2, 6).T.ravel()]]
    zonal = idm.kernels.SphericalMatern32()
    levels = idm.diagnostics.spectrum(zonal, "relu", dimension=3, max_degree=9).variance_shares
    harmonics = np.full([10, 19], np.nan)
    for degree, share in enumerate(levels):
        harmonics[degree, : 2 * degree + 1] = share / (2 * degree + 1)
    products = np.outer(variances, variances)
    return products / np.sum(products), harmonics


def measured(*, prior: str, degrees: list[int], data_dir: str | None) -> dict[str, Any]:
    """Fit one model, or those under the same kernel, in a process of its own."""
    train, held_out = banana(data_dir)
    fits: list[dict[str, Any]] = []

    def add(name: str, degree: int, fit: Callable[[], tuple[Any, float]]) -> None:
        started = time.process_time()
        model, elbo = fit()
        seconds = time.process_time() - started
        errors = class_errors(model, *held_out)
        fits.append({"prior": name, "degree": degree, **errors, "elbo": elbo, "seconds": seconds})

    trained = partial(fitted, train, degrees[-1])
    if prior != "fixed":
        add(prior, degrees[-1], trained)
        return {"fits": fits}
    kernel = trained()[0].kernel
    for degree in degrees:
        add(prior, degree, partial(under_the_same_kernel, train, kernel, degree))
    add(LIMIT, degrees[-1], partial(under_the_same_kernel, train, kernel, None))
    return {"fits": fits}


def harmonics_up_to(kernel: Any, degree: int) -> Any:
    """All of two inputs."""
    return idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=degree)


def fitted(train: Rows, degree: int) -> tuple[Any, float]:
    """A model whose kernel is trained, and its bound."""
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(2))
    harmonics = harmonics_up_to(kernel, degree)
    model = idm.models.DualSVGP(train, kernel, gpflow.likelihoods.Bernoulli(), harmonics)
    fit = idm.fit(model, progress=False)
    return model, max(fit.elbos)


def under_the_same_kernel(train: Rows, kernel: Any, degree: int | None) -> tuple[Any, float]:
    """The optimal q of harmonics up to a degree, or of the values at all rows (None), under a
    kernel that stays as it is; and the bound."""
    gpflow.set_trainable(kernel, False)
    likelihood = gpflow.likelihoods.Bernoulli()
    if degree is None:
        exact = gpflow.models.VGP(train, kernel, likelihood)
        idm.fit(exact, steps=2_000, progress=False)
        return exact, float(exact.elbo())
    model = idm.models.DualSVGP(train, kernel, likelihood, harmonics_up_to(kernel, degree))
    fit = idm.fit(model, progress=False)
    return model, max(fit.elbos)


if __name__ == "__main__":
    BananaDegree.command()
