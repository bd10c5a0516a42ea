"""Are covariances valid, bounds bounds and gradients right, whatever the numbers?

Random models (draws.py): every family of kernels and inducing variables, one to eighteen
columns, parameters over four to six powers of ten, rows that are near one or, in half of the draws,
between 1e-8 and 1e8, far from the origin and twice there; both float types. Of every draw the
covariances are checked, of each tenth the models (checks.py): nothing is NaN, K and its
diagonal agree and have no negative eigenvalue, what inducing variables explain is below the prior,
float32 agrees with float64, the collapsed bound is below the exact log marginal likelihood, its
gradient is that of finite differences, predicted variances are positive.

A draw is named by family, seed and number; the table lists every fault by these. "Refused" are
models whose Kuu has no Cholesky factor with GPflow's jitter in that float type, those whose signal
is so far above the noise that SGPR's second factor has none, and those that are refused with a
reason; "beyond" those of stationary kernels whose rows are so many lengthscales from the origin
that no digit is left of their distances. Neither is checked further.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.tables import markdown

FAMILIES = (
    "harmonics",
    "points",
    "activations",
    "harmonic_parts",
    "interval",
    "mixture",
    "patches",
    "orbits",
)
DRAWS, SHORT_DRAWS = 1_250, 10  # of each family and seed
AT_ONCE = 125
MODELS_EVERY = 10
NO_FAULT = ("beyond", "refused")
SHOWN = 10  # faults of one kind


class Attack(Benchmark):
    __doc__ = __doc__
    name = "attack"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--families", type=names(FAMILIES, "families"), default=None)
        parser.add_argument("--seeds", type=indices, default=None, help="default 0")
        parser.add_argument("--draws", type=int, default=None, help=f"default {DRAWS} a family")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        draws = arguments.draws or (SHORT_DRAWS if arguments.short else DRAWS)
        for seed in arguments.seeds or [0]:
            for first in range(0, draws, AT_ONCE):
                for family in arguments.families or FAMILIES:
                    last = min(first + AT_ONCE, draws)
                    yield {"family": family, "seed": seed, "first": first, "last": last}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return attack(**configuration)

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def attack(family: str, seed: int, first: int, last: int) -> dict[str, Any]:
    """The faults of some draws: name of the check, float type, number of the draw, excess, text."""
    import numpy as np

    from benchmarks.attack.checks import faults
    from benchmarks.attack.draws import draw

    counts: Counter[str] = Counter()
    found = []
    for number in range(first, last):
        drawn = draw(family, np.random.default_rng([seed, FAMILIES.index(family), number]))
        for dtype in (np.float64, np.float32):
            for check, excess, raised in faults(drawn, dtype, models=number % MODELS_EVERY == 0):
                counts[f"{check} {dtype.__name__}"] += 1
                if check not in NO_FAULT:
                    found.append(
                        {
                            "check": check,
                            "float": dtype.__name__,
                            "number": number,
                            "excess": min(excess, 1e300),
                            "text": f"{drawn.text} {raised}".strip(),
                        }
                    )
    return {"draws": last - first, "counts": dict(counts), "faults": found}


def table_of(records: Sequence[Record]) -> str:
    """A row for each family; below, the faults."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["configuration"]["family"], []).append(record)
    rows, lines = [], []
    for family, group in groups.items():
        counts: Counter[str] = Counter()
        for record in group:
            counts.update(record["result"]["counts"])
        draws = sum(record["result"]["draws"] for record in group)
        models = sum(
            len(range(*_numbers(record["configuration"]), MODELS_EVERY)) for record in group
        )
        of_faults = {
            key: count for key, count in sorted(counts.items()) if key.split()[0] not in NO_FAULT
        }
        rows.append(
            (
                family,
                draws,
                models,
                *(f"{counts[f'{name} float64']}, {counts[f'{name} float32']}" for name in NO_FAULT),
                "; ".join(f"{key}: {count}" for key, count in of_faults.items()) or "none",
                f"{sum(record['seconds'] for record in group) / draws:.2f}",
            )
        )
        for key in of_faults:
            lines += _listed(family, key, group)
    headers = ("family", "draws", "with models", "beyond", "refused", "faults", "s a draw")
    total = sum(int(row[1]) for row in rows)
    return (
        f"{total} draws, each in float64 and float32 (the numbers of both).\n\n"
        + markdown(headers, rows)
        + "".join(f"\n{line}" for line in ["", *lines] if lines)
    )


def _numbers(configuration: Configuration) -> tuple[int, int]:
    """First and last draw, from the first on that has models."""
    first = -(-configuration["first"] // MODELS_EVERY) * MODELS_EVERY
    return first, configuration["last"]


def _listed(family: str, key: str, group: Sequence[Record]) -> list[str]:
    found = [
        f"- {family} {key}, seed {record['configuration']['seed']} number {fault['number']}, "
        f"excess {fault['excess']:.3g}: {fault['text']}"
        for record in group
        for fault in record["result"]["faults"]
        if f"{fault['check']} {fault['float']}" == key
    ]
    more = len(found) - SHOWN
    return found[:SHOWN] + ([f"- and {more} more of these"] if more > 0 else [])
