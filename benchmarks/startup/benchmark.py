"""How long does a user wait for the first step of training, and for a second fit?

Every case in a fresh process, whose steps are timed one after the other:
imports      tensorflow and gpflow, and what `import interdomain` adds after them;
first step   from the end of the imports: the model is built and `fit(..., steps=1)` returns;
second fit   the same call again, with the same model and batches of the same shape; then a third.

The cases are in cases.py: float64, 10,000 rows of 8 inputs in batches of 1,000 (1,000
images in batches of 50), 210 points or harmonics, HVGP with 8 x 100 points. The data are made up.

Each round runs all cases once. The table has medians [least, most] over rounds, in seconds: CPU s
are those of all threads together, which other work on the machine changes less. Graphs are those
that TensorFlow makes during the second and the third fit, MB by how much resident memory is larger
after them. `--label` names the code that is measured: "before" is what the targets of half the time
refer to, and every other label is compared with it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.results import Record, configuration_key
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks.startup import cases
from benchmarks.startup.cases import CASES

BEFORE, NOW = "before", "now"
SIZES = {
    "num_data": 10_000,
    "batch_size": 1_000,
    "max_degree": 3,
    "num_inducing": 210,
    "part_size": 100,
    "num_images": 1_000,
    "num_patches": 50,
}
SHORT_SIZES = {
    "num_data": 500,
    "batch_size": 100,
    "max_degree": 2,
    "num_inducing": 54,
    "part_size": 20,
    "num_images": 100,
    "num_patches": 10,
}
SHORT_CASES = ("svgp", "harmonics", "hvgp")
FIRST_TARGETS = {
    "svgp": 2.0,
    "harmonics": 2.5,
    "harmonics_diagonal": 2.5,
    "hvgp": 4.0,
    "orthogonal": 4.0,
}
FIRST_TARGET_OF_OTHERS = 0.5  # of the seconds before
SECOND_TARGET = 0.5
IMPORT_TARGET = 0.4  # of `import interdomain`


class Startup(Benchmark):
    __doc__ = __doc__
    name = "startup"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cases", type=names(tuple(CASES), "cases"), default=None)
        parser.add_argument("--rounds", type=int, default=None, help="default 3")
        parser.add_argument("--label", default=NOW, help=f"of the code; default {NOW!r}")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for k in range(arguments.rounds or (1 if short else 3)):
            for case in arguments.cases or (SHORT_CASES if short else CASES):
                sizes = SHORT_SIZES if short else SIZES
                yield {"case": case, "code": arguments.label, "round": k, **sizes, "seed": 0}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {key: value for key, value in configuration.items() if key not in ("code", "round")}
        return dict(from_child(cases.measure, **given))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def table_of(records: Sequence[Record]) -> str:
    """One row for each case and label, "before" first; then which targets are met."""
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=_position):
        groups.setdefault(_key(record["configuration"]), []).append(record)
    rows, verdicts = [], Verdicts()
    for group in groups.values():
        run = group[0]["configuration"]
        before = groups.get(_key({**run, "code": BEFORE}))
        seconds_before = None if before is None else _median(before, _first)
        first, second = _median(group, _first), _median(group, _second)
        target = _first_target(run["case"], seconds_before)
        if run["code"] == BEFORE and run["case"] not in FIRST_TARGETS:
            target = None  # half of itself
        if target is not None:
            verdicts.add(run, "first step", target, first)
        verdicts.add(run, "second fit", SECOND_TARGET, second)
        rows.append(
            (
                run["case"],
                run["code"],
                len(group),
                _spread(group, _gpflow),
                _spread(group, _interdomain),
                _spread(group, _first),
                _spread(group, lambda result: result["first"]["cpu_seconds"]),
                "" if target is None else _verdict(first, target),
                "" if seconds_before is None else f"{seconds_before:.3g}",
                _spread(group, _second),
                _spread(group, lambda result: result["second"]["cpu_seconds"]),
                _verdict(second, SECOND_TARGET),
                _second_and_third(group, "graphs", "{:.0f}".format),
                _second_and_third(group, "growth_bytes", megabytes),
            )
        )
    headers = (
        *("case", "code", "rounds", "import gpflow", "+ interdomain", "first step s", "CPU s"),
        *("target", "before", "second fit s", "CPU s", "target", "graphs", "MB"),
    )
    return (
        "Fresh processes: median [least, most] over rounds. First step: from the end of the "
        "imports; graphs and MB: of the second and the third fit.\n\n"
        + markdown(headers, rows)
        + "".join(f"\n\n{line}" for line in [*_imports(records), *verdicts.lines()])
    )


class Verdicts:
    """The cases that meet a target and those that do not, for each label and kind of target."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str], dict[bool, list[str]]] = {}

    def add(self, run: Configuration, kind: str, target: float, seconds: float) -> None:
        cases = self._cases.setdefault((run["code"], kind), {True: [], False: []})
        cases[seconds <= target].append(f"{run['case']} ({target:.3g} s)")

    def lines(self) -> list[str]:
        return [
            f"Targets of the {kind}, {code}: met by {', '.join(cases[True]) or 'none'}; "
            f"NOT met by {', '.join(cases[False]) or 'none'}"
            for (code, kind), cases in self._cases.items()
        ]


def _first_target(case: str, seconds_before: float | None) -> float | None:
    if case in FIRST_TARGETS or seconds_before is None:
        return FIRST_TARGETS.get(case)
    return FIRST_TARGET_OF_OTHERS * seconds_before


def _imports(records: Sequence[Record]) -> list[str]:
    """For each label: the seconds of the imports over all processes, and the load before them."""
    lines = []
    for code in dict.fromkeys(record["configuration"]["code"] for record in records):
        group = [record for record in records if record["configuration"]["code"] == code]
        added = _median(group, _interdomain)
        line = (
            f"Imports, {code}, {len(group)} processes: gpflow {_spread(group, _gpflow)} s; "
            f"interdomain adds {_spread(group, _interdomain)} s "
            f"({_verdict(added, IMPORT_TARGET)})"
        )
        loads = [load for record in group if (load := record.get("load_before")) is not None]
        if loads:
            line += f"; load before them {min(loads):g} to {max(loads):g}"
        lines.append(line)
    return lines


def _gpflow(result: dict[str, Any]) -> float:
    """The seconds of importing GPflow, with TensorFlow, which it needs."""
    return float(sum(result["imports"][name]["seconds"] for name in ("tensorflow", "gpflow")))


def _interdomain(result: dict[str, Any]) -> float:
    return float(result["imports"]["interdomain"]["seconds"])


def _first(result: dict[str, Any]) -> float:
    return float(result["first"]["seconds"])


def _second(result: dict[str, Any]) -> float:
    return float(result["second"]["seconds"])


def _second_and_third(
    group: Sequence[Record], key: str, written: Callable[[float | None], str]
) -> str:
    fits = ("second", "third")
    return ", ".join(written(_median(group, lambda result, f=fit: result[f][key])) for fit in fits)


def _median(group: Sequence[Record], value: Callable[[dict[str, Any]], float]) -> float:
    return statistics.median(value(record["result"]) for record in group)


def _spread(group: Sequence[Record], value: Callable[[dict[str, Any]], float]) -> str:
    values = [value(record["result"]) for record in group]
    return spread({"median": statistics.median(values), "lower": min(values), "upper": max(values)})


def _key(run: Configuration) -> str:
    """The key that all rounds of the same case share."""
    return configuration_key({**run, "round": None})


def _position(record: Record) -> tuple[int, bool, str]:
    run = record["configuration"]
    return list(CASES).index(run["case"]), run["code"] != BEFORE, run["code"]


def _verdict(seconds: float, target: float) -> str:
    return f"<= {target:.3g}: {'met' if seconds <= target else 'NOT met'}"
