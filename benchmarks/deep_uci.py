"""Deep GPs on regression tables: numbers of layers, and features, at equal CPU seconds.

yacht, energy, concrete, kin8nm, power and protein (`--data-dir`), 90/10 splits, columns normalised.
`deep.build` makes min(D, 5) hidden outputs and M inducing variables in every layer. Training has
natural gradients for the last layer, Adam for the rest, and minibatches of 1,000. Every model has
its own process of one thread, and equal CPU seconds, tracing included.
harmonics           spherical harmonics of most prior variance, finite rank.
activation          ReLU units, finite rank: an activated deep GP.
points              inducing points, squared exponential: the usual deep GP.
harmonics_diagonal  3M harmonics, a diagonal q in every layer.
Test RMSE and log density are in units of the target.

The last column has the figures of Tiao et al. 2023 (Tables 3 and 4, 128 inducing variables, one
layer): ReLU features under the arc-cosine kernel, and points under a Matern-5/2. They have no deep
models, and other splits.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.child import from_child
from benchmarks._lib.data import for_a_process, load_table, source_of
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.tables import markdown, mean_and_deviation

TABLES = ("yacht", "energy", "concrete", "kin8nm", "power", "protein")
FEATURES = ("harmonics", "activation", "points", "harmonics_diagonal")
DIAGONAL = "_diagonal"
LAYERS = (1, 2, 3)
HIDDEN = 5
BATCH_SIZE = 1_000
SAMPLES = 100
THREADS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}

PAPER = {
    # RMSE and log density, of activation features and of points.
    "concrete": ((6.82, -3.33), (5.94, -3.19)),
    "energy": ((1.36, -1.83), (0.47, -0.68)),
    "kin8nm": ((0.12, 0.69), (0.08, 1.03)),
    "power": ((4.20, -2.85), (3.90, -2.78)),
    "yacht": ((1.17, -1.81), (0.34, -0.33)),
}


class DeepUci(
    Benchmark, data_dir=str, datasets=TABLES, features=FEATURES, splits=range, seconds=float
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for split in (arguments.splits or [0])[: 1 if short else None]:
            tables = (arguments.datasets or TABLES)[: 1 if short else None]
            depths = (1, 2) if short else LAYERS
            for data, features, layers in product(tables, arguments.features or FEATURES, depths):
                yield {
                    "data": data,
                    "features": features,
                    "layers": layers,
                    "split": split,
                    "num_inducing": 10 if short else 100,
                    "seconds": 2.0 if short else arguments.seconds or 30.0,
                    "source": source_of(arguments.data_dir),
                }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        return dict(from_child(measured, environment=THREADS, **given))

    def table(self, records: Records) -> str:
        """The mean and standard deviation over the splits."""
        found: dict[tuple[str, str], dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            run = record["configuration"]
            found[run["data"], run["features"]][run["layers"]].append(record["result"])
        counts = sorted({layers for by_layers in found.values() for layers in by_layers})
        rows = []
        for (data, features), by_layers in found.items():
            cells = [
                ", ".join(
                    mean_and_deviation([result[name] for result in by_layers[layers]])
                    for name in ("rmse", "log_density")
                    if by_layers[layers]
                )
                for layers in counts
            ]
            known = dict(zip(("activation", "points"), PAPER.get(data, ()), strict=False))
            rows.append([data, features, *cells, ", ".join(map(str, known.get(features, ())))])
        headers = [f"{n} layer{'s' if n > 1 else ''}: RMSE, log density" for n in counts]
        return markdown(["data", "features", *headers, "Tiao et al. 2023, 1 layer"], rows)


def measured(**run: Any) -> Entries:
    """Train one model, in its own process."""
    from interdomain import deep  # needs the extra of this name

    split, layers = run["split"], run["layers"]
    own = normalise(take_split(load_table(run["data"], run["data_dir"]), split))
    X, Y, X_test, Y_test = own.X_train, own.Y_train, own.X_test, own.Y_test
    scale = own.Y_scale.item()
    started = time.process_time()
    width = min(X.shape[1], HIDDEN)
    diagonal = run["features"].endswith(DIAGONAL)
    num_inducing = run["num_inducing"] * (3 if diagonal else 1)
    model = deep.build(
        X,
        widths=[width] * (layers - 1) + [1],
        features=run["features"].removesuffix(DIAGONAL),
        num_inducing=min(num_inducing, len(X) // 2),
        q_diag=diagonal,
        num_prediction_samples=SAMPLES,
        seed=split,
    )

    def out_of_time(step: int, _: Any) -> None:
        if time.process_time() - started > run["seconds"]:
            raise idm.training.StopFit("the seconds are over")

    fit = idm.fit(
        model,
        (X, Y),
        batch_size=min(BATCH_SIZE, len(X)),
        steps=10**9,
        callbacks=[out_of_time],
        progress=False,
        options={"every": 10, "seed": split},
    )
    spent = time.process_time() - started
    predict = idm.predict_in_batches
    mean, _ = predict(model, X_test, method="predict_y", progress=False)
    density = predict(model, X_test, Y=Y_test, method="predict_log_density", progress=False)
    assert all(np.all(np.isfinite(part)) for part in tf.nest.flatten((mean, density)))
    return {
        "rmse": float(scale * np.sqrt(np.mean(np.square(mean - Y_test)))),
        "log_density": float(np.mean(density) - np.log(scale)),
        "elbo": float(fit.elbo),
        "steps": int(fit.steps),
        "cpu_seconds": spent,
    }


if __name__ == "__main__":
    DeepUci.command()
