"""One training step of HVGP, T x m inducing points, beside SVGP with as many and the other routes.

elbo + gradient to every trainable variable, whitened, full q, Gaussian likelihood, 8 inputs, 1,000
rows, m = 250, Matern-3/2 with one lengthscale, float64. The T = 4, 8, 16 components come from the
negation of 2, 3, 4 groups of principal directions.
svgp m, svgp Tm     gpflow's SVGP with m and with T*m inducing points;
hvgp shared         HVGP whose components share m inducing points;
hvgp distinct       HVGP with m inducing points for each component;
coregionalization   gpflow's LinearCoregionalization and SeparateIndependentInducingVariables over
                    the same components (T = 4 and 8 only: it takes half a minute to trace);
gpytorch Tm         GPyTorch's SVGP with T*m inducing points, if it is installed.

Measures: time (alternating), peak memory of a step, tracing (first `get_concrete_function` of a
fresh process, and the operations in its graph), the same step with the blocks on one and on two
logical CPU devices with one thread each (threads belong to a process, so processes take turns), and
whether the sides compute the same bound.
Times are seconds, median [quartiles] over rounds in which the sides take turns.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.gpytorch import has_gpytorch
from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, ratio, summarise
from benchmarks.hvgp_scaling.agreement import disagreements
from benchmarks.hvgp_scaling.sides import (
    COREGIONALIZATION,
    DISTINCT,
    GPYTORCH,
    SHARED,
    SIDES,
    SVGP_LARGE,
    on_devices,
    traced,
    training_step,
)

MEASURES = ("agreement", "tracing", "memory", "time", "devices")
LARGEST_COREGIONALIZATION = 8
TARGET_COMPONENTS = 8
TARGET_SPEED = {SHARED: 12.0, DISTINCT: 6.0}  # svgp Tm / side
TARGET_TRACING = 5.0  # seconds
TARGET_DEVICES = 1.6  # one device / two devices
ROUNDS_OF_PROCESSES = 5
STEPS_PER_PROCESS = 7


class HvgpScaling(Benchmark):
    __doc__ = __doc__
    name = "hvgp_scaling"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 11; 5 for T = 16")
        parser.add_argument("--num-inducing", type=int, default=None, help="m, default 250")
        parser.add_argument("--components", type=indices, default=None, help="T, default 4,8,16")
        parser.add_argument("--measures", type=names(MEASURES, "measures"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short, with_gpytorch = arguments.short, has_gpytorch(self.name)
        measures = arguments.measures or MEASURES
        if "agreement" in measures:
            yield {"measure": "agreement", "gpytorch": with_gpytorch, "seed": 0}
        for components in arguments.components or ([2] if short else [4, 8, 16]):
            size = {
                "components": components,
                "num_inducing": arguments.num_inducing or (20 if short else 250),
                "rows": 100 if short else 1_000,
                "seed": 0,
            }
            rounds = arguments.rounds or (3 if short else 5 if components > 8 else 11)
            sides = sides_of(components, with_gpytorch)
            in_children = [SVGP_LARGE, SHARED, DISTINCT] if short else sides
            if "tracing" in measures:
                in_graphs = [side for side in in_children if side != GPYTORCH]
                yield {"measure": "tracing", **size, "sides": ",".join(in_graphs)}
            if "memory" in measures:
                yield {"measure": "memory", **size, "sides": ",".join(in_children)}
            if "time" in measures:
                yield {"measure": "time", **size, "sides": ",".join(sides), "rounds": rounds}
            if "devices" in measures and (short or components == TARGET_COMPONENTS):
                given = arguments.rounds or (1 if short else ROUNDS_OF_PROCESSES)
                yield {"measure": "devices", **size, "rounds": given}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        measure, seed = configuration["measure"], configuration["seed"]
        if measure == "agreement":
            return {"disagreements": disagreements(configuration["gpytorch"], seed)}
        size = {key: configuration[key] for key in ("components", "num_inducing", "rows", "seed")}
        if measure == "devices":
            samples = alternate_placements(size, configuration["rounds"])
            return {
                "seconds": {name: summarise(values) for name, values in samples.items()},
                "ratio": ratio(samples, "one device", "two devices"),
            }
        sides = configuration["sides"].split(",")
        if measure == "tracing":
            return {"tracing": {side: from_child(traced, side=side, **size) for side in sides}}
        step = training_step
        if measure == "memory":
            return {"peak_bytes": {side: peak_bytes(step, side=side, **size) for side in sides}}
        samples = alternate(
            {side: step(side=side, **size) for side in sides},
            rounds=configuration["rounds"],
            description="rounds",
        )
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {side: ratio(samples, SVGP_LARGE, side) for side in sides},
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def alternate_placements(size: dict[str, int], rounds: int) -> dict[str, list[float]]:
    """The median step of a fresh process for each placement, in turn."""
    placements: dict[str, dict[str, Any]] = {
        "one device": {"num_devices": 1, "placed": True},
        "two devices": {"num_devices": 2, "placed": True},
        "one device, in batches": {"num_devices": 1, "placed": False},
    }
    samples: dict[str, list[float]] = {name: [] for name in placements}
    for _ in range(rounds):
        for name, placement in placements.items():
            steps = from_child(on_devices, **placement, **size, rounds=STEPS_PER_PROCESS)
            samples[name].append(statistics.median(steps))
    return samples


def sides_of(components: int, with_gpytorch: bool) -> list[str]:
    """The sides that are measured with so many components."""
    left_out = set() if with_gpytorch else {GPYTORCH}
    if components > LARGEST_COREGIONALIZATION:
        left_out.add(COREGIONALIZATION)
    return [side for side in SIDES if side not in left_out]


def table_of(records: Sequence[Record]) -> str:
    """One row per size and side; then the targets, the devices and the agreement."""
    sizes: dict[tuple[int, int, int], dict[str, Record]] = {}
    agreement: Record | None = None
    for record in sorted(records, key=lambda record: str(record.get("finished_at", ""))):
        run = record["configuration"]
        if run["measure"] == "agreement":
            agreement = record
        else:
            size = (run["components"], run["num_inducing"], run["rows"])
            sizes.setdefault(size, {})[run["measure"]] = record
    rows, lines = [], []
    for size in sorted(sizes):
        measures = {name: record["result"] for name, record in sizes[size].items()}
        rows += _rows(size, measures)
        if size[0] == TARGET_COMPONENTS:
            lines += _verdicts(size, measures)
        lines += _placements(size, measures)
    headers = (
        *("T", "m", "rows", "side", "step s", "svgp Tm / side"),
        *("MB", "tracing s", "operations"),
    )
    text = (
        "elbo + gradient: median [quartiles]; MB is the peak of one step; tracing in a fresh "
        "process.\n\n" + markdown(headers, rows)
    )
    if agreement is not None:
        differences = agreement["result"]["disagreements"]
        lines.append(
            "Relative differences between bounds that must be equal: "
            + ", ".join(f"{name} {value:.1e}" for name, value in differences.items())
        )
    return text + "".join(f"\n\n{line}" for line in lines)


def _rows(size: tuple[int, int, int], measures: dict[str, Any]) -> list[tuple[object, ...]]:
    timed = measures.get("time", {"seconds": {}, "ratios": {}})
    memory = measures.get("memory", {"peak_bytes": {}})["peak_bytes"]
    tracing = measures.get("tracing", {"tracing": {}})["tracing"]
    rows: list[tuple[object, ...]] = []
    for side in SIDES:
        if side not in timed["seconds"] and side not in memory and side not in tracing:
            continue
        graph = tracing.get(side)
        rows.append(
            (
                *size,
                side,
                spread(timed["seconds"][side]) if side in timed["seconds"] else "",
                spread(timed["ratios"][side]) if side in timed["ratios"] else "",
                megabytes(memory.get(side)),
                "" if graph is None else f"{graph['seconds']:.1f}",
                "" if graph is None else f"{graph['operations']:,.0f}",
            )
        )
    return rows


def _verdicts(size: tuple[int, int, int], measures: dict[str, Any]) -> list[str]:
    parts = []
    if "time" in measures:
        for side, target in TARGET_SPEED.items():
            faster = measures["time"]["ratios"][side]["median"]
            parts.append(
                f"{side} {faster:.1f}x as fast as {SVGP_LARGE} "
                f"(>= {target:g}x: {_met(faster >= target)})"
            )
    for side in (SHARED, DISTINCT):
        if "tracing" in measures:
            seconds = measures["tracing"]["tracing"][side]["seconds"]
            parts.append(
                f"{side} traced in {seconds:.1f} s "
                f"(<= {TARGET_TRACING:g} s: {_met(seconds <= TARGET_TRACING)})"
            )
        if "memory" in measures:
            memory = measures["memory"]["peak_bytes"]
            parts.append(
                f"{side} {megabytes(memory[side])} MB "
                f"(below {SVGP_LARGE}: {_met(memory[side] < memory[SVGP_LARGE])})"
            )
    return [f"Targets at {_size(size)}: " + "; ".join(parts)] if parts else []


def _placements(size: tuple[int, int, int], measures: dict[str, Any]) -> list[str]:
    if "devices" not in measures:
        return []
    seconds, gain = measures["devices"]["seconds"], measures["devices"]["ratio"]
    text = f"Blocks of {DISTINCT} on devices at {_size(size)}, seconds: " + ", ".join(
        f"{name} {spread(value)}" for name, value in seconds.items()
    )
    text += f"; one / two devices {spread(gain)}"
    if size[0] == TARGET_COMPONENTS:
        met = _met(gain["median"] >= TARGET_DEVICES)
        text += f" (>= {TARGET_DEVICES:g}x: {met})"
    return [text]


def _size(size: tuple[int, int, int]) -> str:
    return f"T = {size[0]}, m = {size[1]}, {size[2]:,} rows"


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"
