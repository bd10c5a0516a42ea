"""How long does a user wait for the first step of training, and for a second fit?

Every case runs in a fresh process, which times its steps one after the other:
imports      tensorflow and gpflow, and the additional time of `import interdomain`.
first step   from the end of the imports: the model is built and `fit(..., steps=1)` returns.
second fit   the call again, with this model and batches of this shape; then a third time.

The cases are in cases.py: float64, 10,000 synthetic rows of 8 inputs in batches of 1,000, or 1,000
images in batches of 50. They have 210 points or harmonics; HVGP has 8 x 100 points.

Each round runs all cases once. The table has medians [least, most] over rounds, in seconds. CPU s
sums all threads, and changes less with other load on the machine. Graphs are the graphs that
TensorFlow makes during the second and the third fit. MB is the growth of resident memory by them.
`--label` names the measured code. Targets are relative to the label "before", with which every
other label is compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import megabytes, spread, tabulated
from benchmarks.startup import cases
from benchmarks.startup.cases import CASES

BEFORE, NOW = "before", "now"
FITS = ("second", "third")
SIZES = {  # of the full and of the short version
    "num_data": (10_000, 500),
    "batch_size": (1_000, 100),
    "max_degree": (3, 2),
    "num_inducing": (210, 54),
    "part_size": (100, 20),
    "num_images": (1_000, 100),
    "num_patches": (50, 10),
}
SHORT_CASES = ("svgp", "harmonics", "hvgp")
FIRST_TARGETS = {"svgp": 2.0, "harmonics": 2.5, "harmonics_diagonal": 2.5}
FIRST_TARGETS |= {"hvgp": 4.0, "orthogonal": 4.0}
FIRST_TARGET_OF_OTHERS = 0.5  # as a share of the seconds before
SECOND_TARGET = 0.5
IMPORT_TARGET = 0.4  # seconds of `import interdomain`


class Startup(Benchmark, cases=CASES, rounds=int, label=str):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for k in range(arguments.rounds or (1 if short else 3)):
            for case in arguments.cases or (SHORT_CASES if short else CASES):
                sizes = {name: pair[short] for name, pair in SIZES.items()}
                yield {"case": case, "code": arguments.label or NOW, "round": k, **sizes, "seed": 0}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = {key: value for key, value in configuration.items() if key not in ("code", "round")}
        return dict(from_child(cases.measure, **given))

    def table(self, records: Records) -> str:
        """One row for each case and label, "before" first; then the seconds of the imports."""
        groups: dict[tuple[int, bool, str], list[dict[str, Any]]] = {}
        for record in records:
            run = record["configuration"]
            key = (list(CASES).index(run["case"]), run["code"] != BEFORE, run["code"])
            groups.setdefault(key, []).append(record["result"])
        rows, lines = [], []
        for (number, _, code), results in sorted(groups.items()):
            case = list(CASES)[number]
            before = groups.get((number, False, BEFORE))
            target = FIRST_TARGETS.get(case)
            if target is None and before and code != BEFORE:
                target = FIRST_TARGET_OF_OTHERS * _median(before, "first", "seconds")
            first, second = (_median(results, fit, "seconds") for fit in ("first", "second"))
            row = {"case": case, "code": code, "rounds": len(results)}
            row |= {
                f"{fit}_{measure}": _spread(results, fit, measure)
                for fit in ("first", "second")
                for measure in ("seconds", "cpu_seconds")
            }
            row |= {"target": None if target is None else _verdict(first, target)}
            row |= {"second_target": _verdict(second, SECOND_TARGET)}
            row |= {"graphs": ", ".join(f"{_median(results, fit, 'graphs'):.0f}" for fit in FITS)}
            growth = (megabytes(_median(results, fit, "growth_bytes")) for fit in FITS)
            rows.append(row | {"growth": ", ".join(growth)})
        for code in dict.fromkeys(code for _, _, code in groups):
            imports = [
                {name: times["seconds"] for name, times in result["imports"].items()}
                for key, group in groups.items()
                for result in group
                if key[2] == code
            ]
            gpflow = statistics.median(one["tensorflow"] + one["gpflow"] for one in imports)
            added = statistics.median(one["interdomain"] for one in imports)
            lines.append(
                f"\n\nImports, {code}, {len(imports)} processes: gpflow {gpflow:.3g} s; "
                f"interdomain adds {added:.3g} s ({_verdict(added, IMPORT_TARGET)})"
            )
        table = tabulated(
            rows,
            "case; code; rounds; first step s = first_seconds; CPU s = first_cpu_seconds; target; "
            "second fit s = second_seconds; CPU s = second_cpu_seconds; target = second_target; "
            "graphs; MB = growth",
        )
        return (
            "Fresh processes: median [least, most] over rounds. First step: from the end of the "
            "imports; graphs and MB: of the second and the third fit.\n\n"
            + "".join([table, *lines])
        )


def _median(results: Sequence[Any], fit: str, measure: str) -> float:
    return float(statistics.median(result[fit][measure] for result in results))


def _spread(results: Sequence[Any], fit: str, measure: str) -> str:
    values = [result[fit][measure] for result in results]
    return spread({"median": statistics.median(values), "lower": min(values), "upper": max(values)})


def _verdict(seconds: float, target: float) -> str:
    return f"<= {target:.3g}: {'met' if seconds <= target else 'NOT met'}"
