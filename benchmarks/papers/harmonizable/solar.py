"""Solar irradiance with three kernels (Shen, Heinonen and Kaski 2019, section 5.3 and Figure 4).

Yearly values from 1610 to 2000, of which five intervals of 20 or 30 years are left out and
predicted. Inputs and outputs are standardised by the training years. Collapsed regression (SGPR)
with at most 50 inducing variables:
se   squared exponential, 50 points.
sm   a spectral mixture of 5 components, 50 points (the paper's 3 leave none for the 11-year cycle).
hmk  a harmonizable mixture of 5 components of 3 frequencies, 5 Fourier features for each component.
hmk_whole
     hmk with 25 Fourier features of the whole mixture (the paper's section 4.3).
Models without the sparse approximation, or with other inducing variables, show what is due to them:
se_exact, sm_exact and hmk_exact (GPR), hmk_points (50 points).

L-BFGS trains all parameters from five starts: lengthscales, and k-means with five seeds, with noise
on the frequencies of the spectral mixture. The model is the start with the best bound on the
training years, as in the paper. The picture, solar.png, is drawn from the records: predictions, and
the Wigner distribution of the harmonizable mixture with the frequencies of its features.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays, source_of
from benchmarks._lib.prediction import Predictor, gaussian_errors
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Record, Records
from benchmarks._lib.tables import tabulated

MODELS = ("se", "sm", "hmk", "hmk_whole", "se_exact", "sm_exact", "hmk_points", "hmk_exact")
TITLES = {
    "se": "squared exponential, 50 points",
    "sm": "spectral mixture, 50 points",
    "hmk": "harmonizable mixture, Fourier features",
}
LENGTHSCALES = (0.02, 0.05, 0.1, 0.3, 1.0)
PLACES, FREQUENCIES = 60, 48
BOUND = itemgetter("bound")


class Solar(Benchmark, data_dir=str, models=MODELS, starts=range):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for model in arguments.models or (MODELS[:3] if short else MODELS):
            for start in arguments.starts or ([0] if short else range(5)):
                own = {"sm_components": 2 if short else 5}
                yield {
                    "model": model,
                    **(own if model.startswith("sm") else {}),
                    "num_inducing": 20 if short else 50,
                    "components": 2 if short else 5,
                    "frequencies": 2 if short else 3,
                    "max_iterations": 5 if short else 300,
                    "start": start,
                    "source": source_of(arguments.data_dir),
                }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        years = load_years(arguments.data_dir)
        model = build_model(configuration, years.train)
        outcome = idm.fit(
            model,  # it holds its data
            steps=configuration["max_iterations"],
        )
        return {
            "bound": outcome.elbo,
            "iterations": outcome.steps,
            "converged": outcome.converged,
            "fit_seconds": round(outcome.seconds, 1),
            **results_of(model, years),
        }

    def table(self, records: Records) -> str:
        """One row for each model: the start with the best bound, and the range over all starts."""
        rows = []
        for model, found in by_model(records).items():
            results = [record["result"] for record in found]
            spans = {
                f"{name}s": f"{min(values):.3f} to {max(values):.3f}"
                for name in ("rmse", "nll")
                for values in ([result[name] for result in results],)
            }
            seconds = np.median([result["fit_seconds"] for result in results])
            own = {"model": model, "starts": len(results), "seconds": seconds}
            rows.append({**max(results, key=BOUND), **spans, **own})
        return (
            "Solar irradiance, 110 test years in five intervals, standardised outputs; the start "
            "with the best bound on the training years.\n\n"
            + tabulated(
                rows,
                "model; M = num_inducing; test RMSE = rmse .3f; test NLPD = nll .3f; "
                "bound = bound .1f; RMSE of all starts = rmses; NLPD of all starts = nlls; "
                "starts; iterations; seconds = seconds .0f",
            )
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Draw Figure 4: a prediction for each kernel, and the Wigner distribution."""
        years = load_years(arguments.data_dir)
        from matplotlib.figure import Figure

        groups = {model: found for model, found in by_model(records).items() if model in TITLES}
        if not groups:
            return
        figure = Figure(figsize=(10.0, 2.4 * (len(groups) + 1)), layout="constrained")
        axes = figure.subplots(len(groups) + 1, 1, squeeze=False)[:, 0]
        year = years.year[:, 0]
        for axis, (model, found) in zip(axes, groups.items(), strict=False):
            best = max([record["result"] for record in found], key=BOUND)
            mean, deviation = np.array(best["mean"]), np.array(best["deviation"])
            changes = np.flatnonzero(np.diff(np.r_[0, years.is_test.ravel(), 0].astype(int)))
            for first, end in changes.reshape(-1, 2):
                axis.axvspan(year[first], year[end - 1], color="0.9")
            axis.plot(year[~years.is_test], years.Y[~years.is_test], "k.", ms=3)
            axis.plot(year[years.is_test], years.Y[years.is_test], "r.", ms=3)
            axis.plot(year, mean, "C0", lw=1)
            axis.fill_between(
                year, mean - 1.96 * deviation, mean + 1.96 * deviation, color="C0", alpha=0.25, lw=0
            )
            axis.set_xlim(year[0], year[-1])
            title = f"{TITLES[model]}: RMSE {best['rmse']:.3f}, NLPD {best['nll']:.3f}"
            axis.set_title(title, fontsize=9)
        hmk = [record["result"] for record in groups.get("hmk", [])]
        if hmk:
            _draw_wigner(axes[-1], max(hmk, key=BOUND), years)
        figure.savefig(folder / "solar.png", dpi=70)


class Years(NamedTuple):
    """Standardised inputs and outputs of all years ``[N, 1]``, and a mask of the test years."""

    X: Array
    Y: Array
    is_test: Array
    year: Array

    @property
    def train(self) -> tuple[Array, Array]:
        """Inputs and outputs of the training years."""
        return self.X[~self.is_test], self.Y[~self.is_test]


def load_years(data_dir: str | None) -> Years:
    arrays = load_arrays("solar_irradiance", data_dir)
    year, irradiance = arrays["X"].astype(float), arrays["Y"].astype(float)
    is_test = arrays["test_mask"].astype(bool)
    X = (year - year[~is_test].mean()) / year[~is_test].std()
    Y = (irradiance - irradiance[~is_test].mean()) / irradiance[~is_test].std()
    return Years(X, Y, is_test, year)


def build_model(configuration: Mapping[str, Any], data: tuple[Array, Array]) -> Any:
    """A model at its initial parameters."""
    X, Y = data
    start, name = configuration["start"], configuration["model"]
    kind, _, inference = name.partition("_")
    if kind == "se":
        kernel = gpflow.kernels.SquaredExponential(lengthscales=LENGTHSCALES[start])
    elif kind == "sm":
        kernel = idm.kernels.SpectralMixture.from_data(X, Y, configuration["sm_components"])
        rng = np.random.default_rng(start)
        for component in kernel.kernels if start else ():
            noise = rng.normal(scale=0.1 * np.sqrt(component.lag.numpy()))
            component.frequency.assign(component.frequency + noise)
    else:
        kernel = idm.kernels.HarmonizableMixture.from_data(
            X, Y, configuration["components"], configuration["frequencies"], seed=start
        )
    if inference == "exact":
        return gpflow.models.GPR(data, kernel, noise_variance=0.1)
    if name in ("hmk", "hmk_whole"):
        count, by_part = configuration["num_inducing"] // 2, name == "hmk"
        features = idm.inducing_variables.HarmonizableFourierFeatures.for_kernel(
            kernel,
            count // configuration["components"] if by_part else count,
            per_component=by_part,
        )
    else:
        features = np.linspace(X.min(), X.max(), configuration["num_inducing"])[:, None]
    return gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)


def results_of(model: Any, years: Years) -> dict[str, Any]:
    """Errors of the test years and the prediction of all years; for the features, the Wigner
    distribution and their frequencies."""
    mean, variance = Predictor(model, 1)(years.X)
    noise = float(model.likelihood.variance.numpy())
    variance = variance + noise
    errors = gaussian_errors(years.Y[years.is_test], mean[years.is_test], variance[years.is_test])
    result = {
        **errors,
        "noise_variance": noise,
        "mean": rounded(mean),
        "deviation": rounded(np.sqrt(variance)),
    }
    features = getattr(model, "inducing_variable", None)
    if features is None:
        return {**result, "num_inducing": len(years.train[0])}
    result["num_inducing"] = int(features.num_inducing)
    if isinstance(features, idm.inducing_variables.SumInducingVariables):
        places, frequencies = wigner_grid(years)
        result["wigner"] = rounded(model.kernel.wigner(places, frequencies).numpy())
        result["features"] = [
            {
                "centre": float(component.centre.numpy()[0]),
                "frequencies": rounded(np.abs(block.frequencies.numpy())),
            }
            for component, block in zip(
                model.kernel.kernels, features.inducing_variables, strict=True
            )
        ]
    return result


def rounded(values: Array) -> list[float]:
    """Values with five digits, for pictures."""
    return [float(f"{value:.5g}") for value in np.ravel(values)]


def wigner_grid(years: Years) -> tuple[Array, Array]:
    """Places, and frequencies up to one cycle in 7 years, in standardised units."""
    places = np.linspace(years.X.min(), years.X.max(), PLACES)[:, None]
    per_year = np.ptp(years.X) / np.ptp(years.year)
    frequencies = np.linspace(0, 1 / (7 * per_year), FREQUENCIES)[:, None]
    return places, frequencies


def by_model(records: Records) -> dict[str, list[Record]]:
    """The records of each model, in the order of MODELS."""
    found = {
        model: [r for r in records if r["configuration"]["model"] == model] for model in MODELS
    }
    return {model: rows for model, rows in found.items() if rows}


def _draw_wigner(axis: Any, result: Any, years: Years) -> None:
    places, frequencies = wigner_grid(years)
    values = np.array(result["wigner"]).reshape(len(places), len(frequencies)).T
    years_per_unit = np.ptp(years.year) / np.ptp(years.X)
    x = years.year[0, 0] + (places[:, 0] - places[0, 0]) * years_per_unit
    limit = np.max(np.abs(values))
    axis.pcolormesh(
        x, frequencies[:, 0] / years_per_unit, values, cmap="RdBu_r", vmin=-limit, vmax=limit
    )
    for block in result["features"]:
        marks = np.array(block["frequencies"]) / years_per_unit
        centre = years.year[0, 0] + (block["centre"] - places[0, 0]) * years_per_unit
        axis.plot(np.full_like(marks, centre), marks, "kx", ms=5)
    axis.set_ylim(0, frequencies[-1, 0] / years_per_unit)
    axis.set_xlabel("year")
    axis.set_ylabel("cycles a year")
    axis.set_title("Wigner distribution and inducing frequencies", fontsize=9)


if __name__ == "__main__":
    Solar.command()
