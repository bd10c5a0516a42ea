"""Does a fit that is killed at any moment, and run again, arrive at the same bits?

    python -m benchmarks.attack_kills --kills 5 --seed 0
    python -m benchmarks.attack_kills --cases svgp,additive_svgp --kills 100

A case is run once in peace. Then, for each kill, it is started again in a folder of its own, gets a
SIGKILL at a moment drawn at random, and is run again to its end.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import Call, Child, from_children, started
from benchmarks._lib.processes import worker_variables
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown
from benchmarks.attack_kills.cases import BEGINS, CASES, newest

PATIENCE = 300.0  # seconds for anything that should have happened by then
GRACE = 60.0  # seconds in which a worker has to notice that the other is gone
DELAYS = (0.1, 3.0)  # at most so many seconds after the moment; at the beginning, when it compiles
FIRST = 0.1  # the part of a run that counts as its beginning, and is not waited for
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
SHORT_CASES = ("svgp",)


class AttackKills(Benchmark):
    """SIGKILL at random moments of a fit, and of one of two workers; the run
    that goes on has to end with the bits of one that was left in peace. Needs POSIX signals."""

    name = "attack_kills"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cases", type=names(list(CASES), "cases"), default=list(CASES))
        parser.add_argument("--kills", type=int, default=3, help="for each case")
        parser.add_argument("--seed", type=int, default=0, help="of the moments")

    def configurations(self, arguments: argparse.Namespace) -> Iterator[Configuration]:
        print(f"seed {arguments.seed}", file=sys.stderr)
        cases, kills = (SHORT_CASES, 1) if arguments.short else (arguments.cases, arguments.kills)
        for kill in range(kills):
            for case in cases:
                yield {"case": case, "seed": arguments.seed, "kill": kill}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        case = configuration["case"]
        in_peace = _in_peace(case)
        position = list(CASES).index(case)
        rng = np.random.default_rng((configuration["seed"], configuration["kill"], position))
        with tempfile.TemporaryDirectory() as folder:
            killed = kill_once(case, folder, rng, in_peace[0]["to"])
            again = to_the_end(case, folder)
        pairs = zip(again, in_peace, strict=True)
        return {
            **killed,
            "from": again[0]["from"],
            "said": [text for one in again for text in one["said"]],
            "same": all(one[key] == other[key] for one, other in pairs for key in ("digest", "to")),
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


@functools.cache
def _in_peace(case: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return to_the_end(case, folder)


def calls_of(case: str, folder: str) -> list[Call]:
    """What the processes of a case are started with: each time with addresses of their own."""
    number, arguments = CASES[case].workers, {**CASES[case].arguments, "folder": folder}
    own = worker_variables(number) if number > 1 else [{}]
    return [Call(arguments, {**QUIET, **variables}) for variables in own]


def to_the_end(case: str, folder: str) -> list[dict[str, Any]]:
    """What the processes of a case return when they are left in peace."""
    return from_children(CASES[case].child, calls_of(case, folder), timeout=PATIENCE)


def kill_once(case: str, folder: str, rng: np.random.Generator, end: int) -> dict[str, Any]:
    """Start a case and kill one of its processes at a moment drawn at random.

    :param end: the step, or the number of rows, at which it ends by itself.
    :returns: "reached" and "delay" (killed so many seconds after so many steps, or rows, had been
        kept), "victim", "ended" (whether it had ended by itself), "kept" (the step, or the rows,
        that were kept), "unfinished" (whether something was being written), "others" (the exit
        status of the other processes; None: stopped here, as they waited for the dead one).
    """
    reached = int(rng.uniform(*CASES[case].window) * end)
    delay = float(rng.uniform(0.0, DELAYS[reached < FIRST * end]))
    victim = int(rng.integers(CASES[case].workers))
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(started(CASES[case].child, call)) for call in calls_of(case, folder)
        ]
        for child in children:
            _wait_for_beginning(child)
        if reached >= FIRST * end:
            _wait_for(children[victim], folder, reached)
        time.sleep(delay)
        children[victim].process.send_signal(signal.SIGKILL)
        status = children[victim].process.wait()
        kept = newest(folder)
        unfinished = any(
            path.suffix == ".tmp" or path.name.endswith("_temp") for path in Path(folder).iterdir()
        )
        others = [_end_of(child) for k, child in enumerate(children) if k != victim]
    return {
        "reached": reached,
        "delay": round(delay, 3),
        "victim": victim,
        "ended": status != -signal.SIGKILL,
        "kept": kept,
        "unfinished": unfinished,
        "others": others,
    }


def _wait_for_beginning(child: Child) -> None:
    deadline = time.monotonic() + PATIENCE
    while BEGINS not in child.text(child.stdout):
        if child.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"it did not begin:\n{child.text(child.stderr)[-2000:]}")
        time.sleep(0.01)


def _wait_for(child: Child, folder: str, reached: int) -> None:
    """Until so much is kept, or the process has ended."""
    deadline = time.monotonic() + PATIENCE
    while (newest(folder) or 0) < reached and child.process.poll() is None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"it did not come to {reached} within {PATIENCE:g} s")
        time.sleep(0.005)


def _end_of(child: Child) -> int | None:
    deadline = time.monotonic() + GRACE
    while child.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return child.process.poll()


def table_of(records: Sequence[Record]) -> str:
    """How the kills of each case ended."""
    rows, different = [], []
    for case in CASES:
        group = [record for record in records if record["configuration"]["case"] == case]
        if not group:
            continue
        results = [record["result"] for record in group]
        hit = [result for result in results if not result["ended"]]
        different += [record["configuration"] for record in group if not record["result"]["same"]]
        kept = [result["kept"] for result in hit if result["kept"] is not None]
        rows.append(
            (
                case,
                len(results),
                len(hit),
                sum(result["kept"] is None for result in hit),
                f"{min(kept)} to {max(kept)}" if kept else "",
                sum(result["unfinished"] for result in hit),
                sum(bool(result["said"]) for result in results),
                f"{sum(result['same'] for result in results)} of {len(results)}",
            )
        )
    headers = (
        *("case", "runs", "killed before their end", "with nothing kept", "kept (step or row)"),
        *("while something was written", "damaged checkpoint passed over", "the same bits"),
    )
    verdict = "All ended with the same bits." if not different else f"NOT the same: {different}"
    return f"{markdown(headers, rows)}\n\n{verdict}"
