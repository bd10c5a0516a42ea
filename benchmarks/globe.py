"""The earth's elevation on the sphere and on a flat map: error at the date line and at the poles.

540 x 1,080 elevations (20 arc minutes, `etopo20`), standardised; 72% of them for training (419,904
rows), 20% for testing, drawn at random as in `elevation`. Without --data-dir a smooth field that is
drawn at random. Every model runs in a process of its own; imports are not counted, everything from
the rows in memory to the predictions of all test rows is.
harmonics_L  all (L + 1)^2 spherical harmonics of the globe up to degree L under GlobeMatern32 of
             their rank, from latitude and longitude in degrees; `fit`: one pass, no subset
box_M        the two angles as columns: M BoxFourierFeatures of a Periodized Matern-3/2
ring_M       the same with a box of 360 degrees of longitude, so that the date line is none
svgp_M       gpflow's SVGP, Matern-3/2, M points (k-means) among the unit vectors in R^3;
             minibatches of 1,000, natural gradients 0.1 and Adam 0.01, so many seconds
Errors are those of all test rows, of those within 10 degrees of the date line, and within 10
degrees of a pole. With --gap G there are no training rows within G degrees of the date line and of
the poles, and the errors are those of test rows there. The jumps are root mean squares of the
predictive mean, in standard deviations of the elevation: across the date line, and around the
poles. Maps of a small model are drawn beside the results.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.data import Array
from benchmarks._lib.elevations import globe, grid, land_and_sea, rows_of, split, unit_rows
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated

MODELS = "harmonics_30 harmonics_50 harmonics_70 box_961 box_2601 ring_961 svgp_500".split()
SHORT = "harmonics_6 box_49 ring_49 svgp_20".split()
LENGTHSCALE = 0.2  # at the start: radians, or standard deviations of a column
MARGIN = 2.0  # of the box, in such lengthscales
NEAR = 10.0  # degrees
REGIONS = ("all", "date line", "poles")
ERRORS = {"rmse": "RMSE", "nll": "NLPD"}


class Globe(Benchmark, data_dir=str, models=(*MODELS, *SHORT), seconds=float, gap=float):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for model in arguments.models or (SHORT if short else MODELS):
            yield {
                "model": model,
                "data": "synthetic" if arguments.data_dir is None else "etopo20",
                "every": 9 if short else 1,
                "seconds": arguments.seconds or (2.0 if short else 300.0),
                "seed": 0,
                **({"gap": arguments.gap} if arguments.gap else {}),
            }

    def table(self, records: Records) -> str:
        """One row for each model, with its gap if there is one."""
        places = [(region, key) for region in REGIONS for key in ERRORS]
        rows = []
        for one in figures(records):
            errors = {f"{region[:4]}_{key}": one[region][key] for region, key in places}
            gap = f", gap {one['gap']:g}" if one.get("gap") else ""
            rows.append({**one, **errors, "model": one["model"] + gap})
        layout = (f"{ERRORS[key]}, {region} = {region[:4]}_{key} .3f" for region, key in places)
        return tabulated(
            rows,
            f"model; features = num_inducing ,; seconds = seconds .0f; {'; '.join(layout)}; "
            "jump, date line = jump_date_line .2g; jump, poles = jump_poles .2g",
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        draw_maps(folder / "globe.png", records[0]["configuration"], arguments.data_dir)


def measured(**run: Any) -> Entries:
    """Train one model; in a process of its own."""
    latitude, longitude, heights = grid(run["data"], run["data_dir"], run["every"])
    X, Y = rows_of(latitude, longitude), heights.reshape(-1, 1)
    (train, test), gap = split(len(X), run["seed"]), run.get("gap")
    if gap:
        left_out = within("date line", X, gap) | within("poles", X, gap)
        train, test = train[~left_out[train]], test[left_out[test]]
    Y = (Y - Y[train].mean()) / Y[train].std()
    started = time.perf_counter()
    fitted, inputs, more = build(run, X[train], Y[train])
    mean, variance = predicted(fitted, inputs(X[test]))
    elapsed = time.perf_counter() - started
    variance = variance + float(fitted.likelihood.variance.numpy())
    return {
        "seconds": elapsed,
        "rows": len(train),
        **{
            region: {"rows": int(rows.sum()), **gaussian_errors(Y[test][rows], mean[rows], v[rows])}
            for region, rows, v in ((r, within(r, X[test]), variance) for r in REGIONS)
        },
        **jumps(lambda X: predicted(fitted, inputs(X))[0]),
        **more,
    }


def predicted(model: Any, X: Array) -> Any:
    """Means and variances of f."""
    return idm.predict_in_batches(model, X, method="predict_f", progress=False)


def within(region: str, X: Array, near: float = NEAR) -> Any:
    """Which rows are in a region."""
    if region == "date line":
        return np.abs(X[:, 1]) >= 180 - near
    return np.abs(X[:, 0]) >= 90 - near if region == "poles" else np.ones(len(X), bool)


def jumps(mean: Any) -> dict[str, float]:
    """Of the mean across the date line, and around both poles."""
    latitude, longitude = np.linspace(-89, 89, 179), np.linspace(-180, 179, 360)
    east, west = (mean(rows_of(latitude, np.array([end]))) for end in (180.0, -180.0))
    poles = mean(rows_of(np.array([-90.0, 90.0]), longitude)).reshape(2, -1)
    return {
        "jump_date_line": float(np.sqrt(np.mean(np.square(east - west)))),
        "jump_poles": float(np.sqrt(np.mean(np.var(poles, axis=1)))),
    }


def build(run: Entries, X: Array, Y: Array) -> tuple[Any, Any, Any]:
    """A trained model, what makes its inputs from degrees, and what its training took."""
    kind, _, text = run["model"].partition("_")
    size = int(text)
    if kind == "svgp":
        return points((unit_rows(X), Y), size, run["seconds"], run["seed"])
    centre, scale = X.mean(axis=0), X.std(axis=0)
    if kind == "harmonics":  # these take degrees
        centre, scale = np.zeros(2), np.ones(2)
    table = (X - centre) / scale
    if kind == "harmonics":
        parts = globe(size)
    elif kind == "box":
        parts = race.waves(table, size, LENGTHSCALE, MARGIN)
    else:
        parts = ring(table[:, 0], size, (np.array([-180.0, 180.0]) - centre[1]) / scale[1])
    made = race.fitted((table, Y), *parts)
    return made[0], lambda X: (X - centre) / scale, race.fit_record(*made)


def ring(latitudes: Array, size: int, ends: Array) -> tuple[Any, Any]:
    """Waves of a box that closes at the date line; its other ends are as of `race.waves`.

    :param ends: Longitudes of -180 and 180 degrees, standardised.
    """
    reach = MARGIN * LENGTHSCALE / 2
    lower, upper = [latitudes.min() - reach, ends[0]], [latitudes.max() + reach, ends[1]]
    base = gpflow.kernels.Matern32(lengthscales=[LENGTHSCALE] * 2)
    kernel = idm.kernels.Periodized(base, lower, upper)
    return kernel, idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, size)


def points(data: race.Rows, size: int, seconds: float, seed: int) -> tuple[Any, Any, Any]:
    """Inducing points among unit vectors, trained for some seconds."""
    started = time.perf_counter()
    model = race.stock(data, size, gpflow.kernels.Matern32(lengthscales=LENGTHSCALE), seed)
    fit = idm.fit(
        model,
        data,
        batch_size=min(race.BATCH_SIZE, len(data[0])),
        steps=10**6,
        optimizer=gpflow.optimizers.NaturalGradient(0.1),
        options={"max_seconds": max(1.0, seconds - (time.perf_counter() - started)), "seed": seed},
    )
    return model, unit_rows, {"num_inducing": size, "steps": fit.steps}


def draw_maps(path: Path, configuration: Entries, data_dir: str | None) -> None:
    """Fit harmonics up to degree 20, or 6 to less than all rows, and draw them beside the data."""
    from matplotlib.figure import Figure

    latitude, longitude, heights = grid(configuration["data"], data_dir, configuration["every"])
    X, Y = rows_of(latitude, longitude), heights.reshape(-1, 1)
    train, _ = split(len(X), configuration["seed"])
    mean, scale = Y[train].mean(), Y[train].std()
    degree = 20 if configuration["every"] == 1 else 6
    model, _ = race.fitted((X[train], (Y[train] - mean) / scale), *globe(degree))
    shown = slice(None, None, 3 if configuration["every"] == 1 else 1)
    latitude, longitude, heights = latitude[shown], longitude[shown], heights[shown, shown]
    found = predicted(model, rows_of(latitude, longitude))[0].reshape(heights.shape)
    figure = Figure(figsize=(9, 8), layout="constrained")
    for part, title, values in zip(
        figure.subfigures(2, 1),
        ("elevation", f"predictive mean, harmonics up to degree {degree}"),
        (heights, mean + scale * found),
        strict=True,
    ):
        idm.plotting.globe(
            latitude,
            longitude,
            values / 1_000,
            coastline=heights,
            title=title,
            label="km above sea level",
            figure=part,
            cmap=land_and_sea(),
            vmin=-8,
            vmax=8,  # sea level in the middle of the colours
        )
    figure.savefig(path, dpi=70)


if __name__ == "__main__":
    Globe.command()
