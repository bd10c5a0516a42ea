"""Rows that are linear functionals of f: sums, means, slopes and gravity, compared with values.

Every model has its own process. CPU seconds are from the rows in memory to the end of `fit`,
imports excluded. Coverage is that of 90% intervals of f; figures are medians over seeds.
hours      1,000,000 means over an hour at random times, with noise; 2,000 waves. "values" uses
           the same rows as values at the middle of their hour. Errors of the rate at other times.
           The rows of "rate" are values of the rate with the same noise: what rows of values cost.
geoid      gravity 10 km above the earth at nodes of a grid of half a degree, drawn by area, with
           harmonics to a degree L; the height of the geoid in metres at 50,000 nodes. "all" has
           all nodes, "heights" also 200 nodes with the height of the geoid. Degrees above L are
           noise of the rows. The bars contain the variance of these degrees in the geoid, by the
           trained power law of the prior.
districts  counts of 300 irregular districts on a map; errors of the rate at pixels, in multiples
           of the mean rate. A count is Poisson with the integral of f over its district
           ("areas"), or with f at the district's middle times its area ("middles"). "repeat" is
           the count of the district divided by its area.
slopes     100 values of plane waves in five columns ("values"), and 2,000 slopes along
           one column each ("slopes"); harmonics to degree 6.
days       daily means of fine dust at one of three stations (a seed each), four years; the hours,
           in micrograms per cubic metre. Splines of two hours, Matern-1/2. "values" uses the daily
           mean as the value at noon; "repeat" repeats it, and "linear" interpolates from noon to
           noon.
blocks     the means of 4 x 4 pixels of a mountain range, and the elevation of all pixels in
           metres. Splines on a grid, Matern-3/2; "centres" uses means as values at the centre.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import source_of
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated
from benchmarks.functionals.blocks import blocks
from benchmarks.functionals.districts import Map, counts, trained
from benchmarks.functionals.geoid import geoid
from benchmarks.functionals.hours import bins, days
from benchmarks.functionals.rows import predicted
from benchmarks.functionals.slopes import slopes

PARTS: dict[str, Callable[..., Entries]] = {
    "hours": bins,
    "geoid": geoid,
    "districts": counts,
    "slopes": slopes,
    "days": days,
    "blocks": blocks,
}
UNITS = {"geoid": "m", "days": "ug/m3", "blocks": "m", "districts": "mean rates"}
READ = {"geoid": "earth_gravity_geoid_30min", "days": "beijing_pm25"}
"""The data files of parts."""
FIGURES = ("num_inducing", "all_rows", "steps", "cpu_seconds", "rmse", "coverage", "z")
NODES = 50_000
HOURS = {"rows": 1_000_000, "num_inducing": 2_000}
DISTRICTS = {"districts": 300, "side": 100, "num_inducing": 600}
SLOPES = {"values": 100, "places": 2_000, "max_degree": 6}
"""The sizes of parts at full size."""


class Functionals(Benchmark, data_dir=str, parts=PARTS):
    def configurations(self, arguments: Arguments) -> Configurations:
        for part in arguments.parts or PARTS:
            if part in READ and arguments.data_dir is None:
                print(f"{part} is skipped: pass --data-dir with {READ[part]}.npz", file=sys.stderr)
                continue
            source = source_of(arguments.data_dir) if part in READ else "libraries"
            for one in runs_of(part, arguments.short):
                yield {"part": part, "seed": 0, **one, "source": source}

    def table(self, records: Records) -> str:
        """One row for each model, with medians over seeds."""
        groups: dict[tuple[str, str], list[Entries]] = {}
        for one in figures(records):
            groups.setdefault((one["part"], one["model"]), []).append(one)
        rows = []
        for (part, model), found in groups.items():
            row = {"part": part, "model": model, "seeds": len(found)}
            row["unit"] = UNITS.get(part, "deviations")
            for name in FIGURES:
                values = [one[name] for one in found if name in one]
                row |= {name: float(np.median(values))} if values else {}
            rows.append(row)
        return tabulated(
            rows,
            "part; model; M = num_inducing ,.0f; rows = all_rows ,.0f; seeds; steps = steps ,.0f; "
            "CPU s = cpu_seconds .1f; RMSE = rmse .3f; unit; coverage = coverage .2f; z = z .2f",
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        draw_districts(folder / "functionals.png", arguments.short)


def runs_of(part: str, short: bool) -> Iterator[Entries]:
    """The configurations of a part, without the names of the part and of the data's source."""
    if part == "hours":
        sizes = {"rows": 2_000, "num_inducing": 100} if short else HOURS
        yield from over_seeds(("values", "means", "rate"), 1 if short else 3, sizes)
    elif part == "geoid":
        wanted = [(8, 500, 0)] if short else [(40, NODES, 0), (70, NODES, 0), (70, 0, 0)]
        wanted += [(8, 500, 20)] if short else [(70, NODES, 200)]
        for degree, rows, heights in wanted:
            more = ", heights" if heights else "" if rows else ", all"
            sizes = {"max_degree": degree, "rows": rows, "heights": heights}
            seeds = 3 if rows and not short else 1  # the errors depend on the drawn nodes
            yield from over_seeds((f"L = {degree}{more}",), seeds, sizes)
    elif part == "districts":
        sizes = {"districts": 30, "side": 20, "num_inducing": 50} if short else DISTRICTS
        yield from over_seeds(("repeat", "middles", "areas"), 1 if short else 5, sizes)
    elif part == "slopes":
        sizes = {"values": 20, "places": 20, "max_degree": 2} if short else SLOPES
        yield from over_seeds(("values", "slopes"), 1, sizes)
    elif part == "days":
        models = ("repeat", "linear", "values", "means")
        yield from over_seeds(models, 1 if short else 3, {"num_days": 20 if short else 1_461})
    else:
        size, most = ("12x12", 40) if short else ("200x172", 403)
        for model in ("repeat", "linear", f"centres_{size}", f"means_{size}"):
            yield {"model": model, "side": 4, "most_pixels": most}


def over_seeds(models: tuple[str, ...], seeds: int, sizes: Entries) -> Iterator[Entries]:
    return ({"model": model, **sizes, "seed": seed} for model in models for seed in range(seeds))


def measured(*, part: str, **run: Any) -> Entries:
    """The figures of one model, in its own process."""
    return PARTS[part](**run)


def draw_districts(path: Path, short: bool) -> None:
    """Draw the rate of districts, its map by the model, and the truth."""
    from matplotlib.figure import Figure

    sizes = next(run for run in runs_of("districts", short) if run["model"] == "repeat")
    here = Map(sizes["districts"], sizes["side"], 0)
    model = trained("areas", here, sizes["num_inducing"])
    mean, variance = predicted(model, here.pixels, 0)
    level = here.counts.sum()
    maps = {
        "counts / area": (here.counts / here.areas)[here.district],
        "mean of f": level * mean,
        "truth": here.rate,
        "half of the 90% interval": level * 1.645 * np.sqrt(variance),
    }
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 4), maps.items(), strict=True):
        image = np.reshape(values, (here.side, here.side))
        ends = {} if "half" in title else {"vmin": 0, "vmax": here.rate.max()}
        shown = axes.imshow(image, origin="lower", extent=(0, 1, 0, 1), **ends)
        axes.set(title=title, xticks=[], yticks=[])
        figure.colorbar(shown, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=100)
