"""Does it pay to train every level's variance, in place of one lengthscale, on the same sums?

Spherical harmonics of all degrees up to a highest one, priors that end with them, the first split,
normalised. Input scales are trained on a subset of the rows, then frozen; the rest is trained on
the sums over all rows by L-BFGS (`fit_sgpr`):
lengthscale  SphericalMatern52: its lengthscale, variance and the noise
free         FreeSpectrum that begins as that one, on the same sums: the ratio of each level's
             variance to the one before, the variance and the noise; no pass over the rows
free+scales  FreeSpectrum that begins as the untrained SphericalMatern52: the ratios are also there
             while the scales are trained on the subset; one pass

RMSE and NLPD are those of test rows (lower is better), the bound is in nats for each training row.
Seconds are everything that the side needs; those of `free` come after those of `lengthscale`.
Shares are those of the levels in the prior variance of a unit vector, degree by degree.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.data import add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import markdown

DEGREES = {
    "concrete": (3, 4),
    "kin8nm": (3, 4),
    "protein": (3, 4),
    "keggdirected": (2,),
    "power": (8,),
}
SIDES = ("lengthscale", "free", "free+scales")


class FreeSpectrumBenchmark(Benchmark):
    __doc__ = __doc__
    name = "free_spectrum"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(tuple(DEGREES), "data sets"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for dataset in arguments.datasets or (("concrete",) if short else DEGREES):
            for max_degree in (2,) if short else DEGREES[dataset]:
                yield {
                    "dataset": dataset,
                    "split": 0,
                    "max_degree": max_degree,
                    "subset_size": 500 if short else 4_000,
                    "subset_steps": 10 if short else 50,
                    "steps": 20 if short else 1_000,
                    "source": source_of(arguments.data_dir),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        table = load_table(configuration["dataset"], arguments.data_dir)
        split = normalise(take_split(table, configuration["split"]))
        chosen = ("max_degree", "subset_size", "subset_steps", "steps", "seed")
        return compared(split, **{key: configuration[key] for key in chosen})

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def compared(
    split: NormalisedSplit,
    *,
    max_degree: int,
    subset_size: int,
    subset_steps: int,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Train the three sides."""
    import interdomain as idm
    from benchmarks._lib.regression import test_errors

    X, Y = split.X_train, split.Y_train
    input_dim = X.shape[1]
    kernel = idm.kernels.SphericalMatern52(
        weight_variances=np.ones(input_dim), max_degree=max_degree
    )
    from_kernel = idm.kernels.FreeSpectrum.from_kernel
    joint = from_kernel(kernel, input_dim, max_degree)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree)

    def fitted(data: Any, kernel: Any, **noise: Any) -> tuple[Any, dict[str, Any]]:
        started = time.perf_counter()
        model = idm.models.StructuredSGPR(data, kernel, harmonics, progress=False, **noise)
        fit = idm.training.fit_sgpr(
            model,
            subset_size=subset_size,
            subset_steps=subset_steps,
            steps=steps,
            seed=seed,
            progress=False,
        )
        seconds = time.perf_counter() - started
        shares = kernel.variance_shares(input_dim + 1, max_degree).numpy()
        errors = test_errors(model, split)
        return model, {
            "rmse": float(np.sqrt(errors["mse"])),
            "nlpd": errors["nlpd"],
            "bound_per_row": float(model.elbo().numpy()) / len(X),
            "noise_variance": float(model.likelihood.variance.numpy()),
            "shares": (shares / shares.sum()).tolist(),
            "steps": fit.steps,
            "converged": fit.converged,
            "pass_seconds": fit.pass_seconds,
            "seconds": seconds,
        }

    first, lengthscale = fitted((X, Y), kernel, noise_variance=0.1)
    free_kernel = from_kernel(kernel, input_dim, max_degree)  # its scales are frozen, as theirs
    noise = float(first.likelihood.variance.numpy())
    _, free = fitted(first.statistics, free_kernel, noise_variance=noise)
    _, scales = fitted((X, Y), joint, noise_variance=0.1)
    sides = dict(zip(SIDES, (lengthscale, free, scales), strict=True))
    return {"num_inducing": int(harmonics.num_inducing), "rows": len(X), "sides": sides}


def table_of(records: Sequence[Record]) -> str:
    """A row for each side."""
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        for side in SIDES:
            found = result["sides"][side]
            rows.append(
                (
                    run["dataset"],
                    f"{result['rows']:,}",
                    run["max_degree"],
                    result["num_inducing"],
                    side,
                    f"{found['rmse']:.4f}",
                    f"{found['nlpd']:.4f}",
                    f"{found['bound_per_row']:.4f}",
                    " ".join(f"{share:.3f}" for share in found["shares"]),
                    f"{found['steps']}{'' if found['converged'] else ' (not converged)'}",
                    f"{found['seconds']:.1f}",
                )
            )
    headers = ("data", "rows", "degree", "M", "trained", "RMSE", "NLPD", "bound/row")
    return markdown((*headers, "shares", "steps", "seconds"), rows)


if __name__ == "__main__":
    sys.exit(FreeSpectrumBenchmark().main())
