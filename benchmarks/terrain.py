"""A mountain range, 344 x 403 elevations: seconds from the data to test errors, on one clock.

The elevations near Jacksboro ship with matplotlib; nothing is downloaded. One row in ten, drawn at
random, is a test row. Each model runs in its own process. The clock runs from the standardised rows
in memory to the predictions of all test rows; imports are excluded.
box_M        M BoxFourierFeatures, a Periodized Matern-3/2 of their rank; `fit`: one pass over the
             rows, then all hyperparameters from the sums.
svgp_M       gpflow's SVGP with M inducing points (k-means of 20,000 rows), Matern-3/2, minibatches
             of 1,000, natural gradients 0.1 and Adam 0.01. It is evaluated at several times (not
             counted); the clock stops after the last one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks._lib import race
from benchmarks._lib.elevations import mountains
from benchmarks._lib.results import points
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Records
from benchmarks._lib.tables import tabulated

MODELS = ("box_480", "box_1080", "box_3000", "svgp_500")
SHORT = ("box_60", "svgp_20")
SVGP_SECONDS = (10.0, 35.0, 60.0, 120.0, 230.0)
LENGTHSCALE = 0.2  # of all models at the start, in standard deviations of the coordinates
MARGIN = 2.0  # of the box, in such lengthscales


class Terrain(Benchmark, models=(*MODELS, *SHORT)):
    def configurations(self, arguments: Arguments) -> Configurations:
        for model in arguments.models or (SHORT if arguments.short else MODELS):
            yield {
                "model": model,
                "seconds": [2.0, 4.0] if arguments.short else list(SVGP_SECONDS),
                "every": 8 if arguments.short else 1,
                "seed": 0,
            }

    def table(self, records: Records) -> str:
        return tabulated(
            points(records),
            "model; M = num_inducing; seconds = seconds .1f; test RMSE = rmse .3f; "
            "test NLPD = nll .3f",
        )


def measured(*, model: str, seconds: Sequence[float], every: int, seed: int) -> dict[str, Any]:
    """Train one model, in its own process."""
    import interdomain  # noqa: F401 - imports are not counted

    kind, _, size = model.partition("_")
    train, held_out = mountains(every, seed)
    if kind == "svgp":
        return race.svgp(train, held_out, int(size), LENGTHSCALE, list(seconds), seed)
    started = time.perf_counter()
    fitted, fit = race.fitted(train, *race.waves(train[0], int(size), LENGTHSCALE, MARGIN))
    errors = race.evaluated(fitted, held_out)
    passed = time.perf_counter() - started
    trace = [{"seconds": passed, **errors}]
    return {"trace": trace, **race.fit_record(fitted, fit), "rows": len(train[0])}


if __name__ == "__main__":
    Terrain.command()
