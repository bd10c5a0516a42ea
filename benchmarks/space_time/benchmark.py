"""Data in space and time: stations by the hour, fine dust by the day, winds, and counts.

Every model has its own process. Seconds are from the rows in memory to the end of training, on the
wall and of the CPUs, imports excluded. Errors are those of readings, with their noise; coverage is
that of 90% bands, and z is the root mean square of normal scores. GiB is the peak memory of the
process.
hours      made-up readings of stations in a square (`made_up.py`): a daily cycle that varies in
           space, weather, and noise with a standard deviation of 0.2. Tests: stations without
           readings ("unseen"), gaps of a day, and the 24 hours after the last reading. "nearest" is
           the mean of the four nearest stations at the same hour, "yesterday" the last reading at
           the same hour.
growth     the seconds of "space_time" by the number of hours: the pass over the rows, and a step of
           L-BFGS on all hours, with the pass.
pm10       daily means of PM10 at 69 stations, each station from the others; micrograms per cubic
           metre. "scale" is the scale on which the prior is Gaussian. With several groups of
           stations, parameters are trained without the group of the station.
winds      wind speeds along the orbits of Jason-3 in six days, in metres a second. Tests: random
           rows, half orbits, and half a day.
counts     made-up Poisson counts per hour and place. RMSE and coverage are those of the log rate,
           NLPD is that of the counts.
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
from benchmarks.space_time.counts import counts
from benchmarks.space_time.hours import NAIVE, hours
from benchmarks.space_time.pm10 import pm10
from benchmarks.space_time.winds import winds

PARTS: dict[str, Callable[..., Entries]] = {
    "hours": hours,
    "growth": hours,
    "pm10": pm10,
    "winds": winds,
    "counts": counts,
}
READ = {"pm10": "pm10_germany_2005", "winds": "jason3"}
"""The data files of parts."""
TESTS = ("unseen", "gap", "ahead", "random", "pass", "half day")
SIZES = ((50, 4_000, 60, 60.0), (200, 5_000, 80, 240.0))
"""Stations, hours, waves of space, and the CPU seconds of the training of SVGP."""
SHORT_SIZES = ((10, 100, 10, 2.0),)
GROWTH = (1_000, 2_000, 4_000, 8_000)
OTHERS = {"svgp": 1_000, "waves": 1_000, "neighbours": 20, "neighbours, cycle": 20}
"""Points, waves or neighbours of other models."""
LARGE = {"svgp": 1_000, "waves": 1_000}
"""The other models of the larger size."""
FIRST = {"model": "altitude", "scale": "log", "groups": 1}
VARIANTS: tuple[Entries, ...] = (
    {"model": "inverse distance"},
    {"model": "places"},
    {},
    {"groups": 7},
    {"model": "places, country"},
    {"scale": "raw"},
    {"scale": "root"},
)
"""The models of fine dust, in differences from the first."""


class SpaceTime(Benchmark, data_dir=str, parts=PARTS):
    def configurations(self, arguments: Arguments) -> Configurations:
        for part in arguments.parts or PARTS:
            if part in READ and arguments.data_dir is None:
                print(f"{part} is skipped: pass --data-dir with {READ[part]}.npz", file=sys.stderr)
                continue
            source = source_of(arguments.data_dir) if part in READ else "libraries"
            for one in runs_of(part, arguments.short):
                yield {"part": part, "seed": 0, **one, "source": source}

    def table(self, records: Records) -> str:
        """One row for each model and kind of test rows."""
        rows = []
        for one in figures(records):
            memory = {"memory": one["peak_bytes"] / 2**30} if "peak_bytes" in one else {}
            tests = [name for name in TESTS if name in one] or ["station"]
            for name in tests:
                rows.append({**one, **memory, "tests": name, **one.get(name, {})})
        return tabulated(
            rows,
            "part; model; scale; M = num_inducing ,; rows = all_rows ,; s = seconds .1f; "
            "CPU s = cpu_seconds .1f; GiB = memory .1f; tests; RMSE = rmse .3f; NLPD = nll .3f; "
            "coverage = coverage .2f; z = z .2f",
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Draw the seconds of training by the number of hours."""
        from matplotlib.figure import Figure

        found = [one for one in figures(records) if one["part"] == "growth"]
        if not found:
            return
        found.sort(key=lambda one: one["hours"])
        numbers = np.array([one["hours"] for one in found])
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        shown = {
            "the pass over the rows": [one["pass_seconds"] for one in found],
            "a step of L-BFGS, in CPU seconds": [one["cpu_seconds_per_step"] for one in found],
        }
        for axes, (title, values) in zip(figure.subplots(1, 2), shown.items(), strict=True):
            slope = np.sum(numbers * values) / np.sum(np.square(numbers))
            axes.plot(numbers, values, "o", label="measured")
            axes.plot([0, numbers[-1]], [0, slope * numbers[-1]], "k:", label="proportional")
            axes.set(title=title, xlabel="hours of 50 stations", ylabel="seconds", ylim=(0, None))
            axes.legend()
        figure.savefig(folder / "space_time.png", dpi=100)


def runs_of(part: str, short: bool) -> Iterator[Entries]:
    """The configurations of a part, without the names of the part and of the data's source."""
    if part == "growth":
        for number in (100, 200) if short else GROWTH:
            size = SHORT_SIZES[0] if short else SIZES[0]
            yield sized("space_time", (size[0], number, *size[2:]))
    elif part == "hours":
        for size in SHORT_SIZES if short else SIZES:
            yield sized("space_time", size)
            others = OTHERS if size == SIZES[0] else {"waves": 30} if short else LARGE
            for name, count in others.items():
                yield sized(name, size, count)
            yield from (sized(name, size) for name in NAIVE)
    elif part == "pm10":
        days, folds = (10, 2) if short else (365, 69)
        chosen = VARIANTS[:3] if short else VARIANTS
        yield from ({**FIRST, **one, "days": days, "folds": folds} for one in chosen)
    elif part == "winds":
        rows = 500 if short else 20_000
        models = [("mean", 0, 0), ("neighbours", 20, 0)]
        models += [("harmonics", 3, 10)] if short else HARMONICS
        for model, count, knots in models:
            yield {"model": model, "num_inducing": count, "knots": knots, "rows": rows}
    else:
        size = (10, 100, 10, 2.0) if short else (50, 1_000, 60, 60.0)
        yield sized("space_time", size)
        yield sized("svgp", size, 30 if short else 500)


HARMONICS = [
    ("harmonics", 12, 30),
    ("harmonics", 18, 30),
    ("harmonics", 18, 60),
]
"""The largest degrees and the numbers of splines of time."""


def sized(model: str, size: tuple[int, int, int, float], count: int | None = None) -> Entries:
    """A configuration of made-up data; the number of features is the size's by default."""
    stations, hours, waves, seconds = size
    names = {"stations": stations, "hours": hours, "seconds": seconds}
    return {"model": model, **names, "num_inducing": waves if count is None else count}


def measured(*, part: str, **run: Any) -> Entries:
    """The figures of one model, in its own process."""
    found = PARTS[part](**run)
    if part == "growth":
        found["cpu_seconds_per_step"] = found["all_hours_cpu"] / found["steps"]
    return found
