"""How much quicker are training steps under a tf.distribute strategy?

Steps of `training.fit` (Adam, minibatches, float64, 8 inputs), the same batch of rows on
no strategy  one process, one core;
1 device     MirroredStrategy over one logical CPU device, one core;
2 devices    MirroredStrategy over two logical CPU devices of one process, two cores;
1 worker     MultiWorkerMirroredStrategy with one process, one core;
2 workers    MultiWorkerMirroredStrategy with two processes on 127.0.0.1, one core each;
2 halves     two processes without a strategy, that know nothing of each other, one core and half of
             the rows each: what the machine allows. The slower one counts.
Each operation has one thread, and a process runs as many at a time as it has devices
(`--device-threads` for two). The models: svgp, SVGP with all spherical harmonics up to degree 3
(M = 210), and hvgp, HVGP with four blocks of 100 points. The data are made up.

Each figure is the median step of a fresh process, and the sides take turns; times are seconds,
median [quartiles] over rounds, and so are the ratios within a round. Also: the bytes of a step's
all-reduces, counted and as loopback has carried them (others' included, if there are any), and what
8 and 64 workers would do by the cost model of cost.py, on a network that is assumed
(`--bandwidth`, `--latency`, `--all-reduces`: they change the table only).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from benchmarks._lib.child import Call, from_children
from benchmarks._lib.processes import ONE_THREAD, cores_of_this_process, worker_variables
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.timing import ratio, summarise
from benchmarks.distributed.cost import Network
from benchmarks.distributed.table import table_of

MODELS = ("svgp", "hvgp")
BATCH_SIZES = (1_024, 4_096, 16_384)
TIMEOUT = 900.0  # seconds, of the processes of one side in one round
PAIRS = (  # of which the ratio is taken
    ("1 device", "2 devices"),
    ("no strategy", "2 devices"),
    ("1 worker", "2 workers"),
    ("no strategy", "2 workers"),
    ("no strategy", "2 halves"),
)


@dataclass(frozen=True)
class Side:
    """One way to run a step.

    :param engine: as `worker.timed_fits` takes it.
    :param replicas: the number of devices of one process, of workers, or of processes without a
        strategy, among which the rows are divided.
    """

    engine: str
    replicas: int


SIDES = {
    "no strategy": Side("none", 1),
    "1 device": Side("devices", 1),
    "2 devices": Side("devices", 2),
    "1 worker": Side("workers", 1),
    "2 workers": Side("workers", 2),
    "2 halves": Side("none", 2),
}


class Distributed(Benchmark):
    __doc__ = __doc__
    name = "distributed"

    def __init__(self) -> None:
        self.network = Network()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        assumed = self.network
        parser.add_argument("--models", type=names(MODELS, "models"), default=None)
        parser.add_argument(
            "--batch-sizes", type=indices, default=None, help="default 1024,4096,16384"
        )
        parser.add_argument("--rounds", type=int, default=None, help="default 3")
        parser.add_argument("--steps", type=int, default=None, help="of a process, default 20")
        parser.add_argument(
            "--device-threads", type=int, default=2, help="of the process of 2 devices, default 2"
        )
        parser.add_argument("--max-degree", type=int, default=None, help="of svgp, default 3")
        parser.add_argument("--num-inducing", type=int, default=None, help="of hvgp, default 100")
        parser.add_argument("--components", type=int, default=None, help="of hvgp, default 4")
        parser.add_argument(
            "--bandwidth", type=float, default=assumed.bandwidth / 1e9, help="Gbit/s, assumed"
        )
        parser.add_argument(
            "--latency", type=float, default=assumed.latency * 1e6, help="microseconds, assumed"
        )
        parser.add_argument(
            "--all-reduces", type=int, default=assumed.all_reduces, help="of a step, in succession"
        )

    def main(self, argv: Sequence[str] | None = None) -> int:
        given = self._parser().parse_args(argv)  # the table depends on them, and has no arguments
        self.network = Network(given.bandwidth * 1e9, given.latency / 1e6, given.all_reduces)
        return super().main(argv)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        sizes = {
            "svgp": {"max_degree": arguments.max_degree or (2 if short else 3)},
            "hvgp": {
                "components": arguments.components or (2 if short else 4),
                "num_inducing": arguments.num_inducing or (20 if short else 100),
            },
        }
        # Short: one model, and its batches in the same processes, most of whose time are imports.
        batches = [[256, 2_048]] if short else [[rows] for rows in BATCH_SIZES]
        if arguments.batch_sizes is not None:
            batches = [[rows] for rows in arguments.batch_sizes]
        for model in arguments.models or (MODELS[:1] if short else MODELS):
            for batch_sizes in batches:
                yield {
                    "model": model,
                    **sizes[model],
                    "batch_sizes": batch_sizes,
                    "num_data": 8_192 if short else 65_536,
                    "device_threads": arguments.device_threads,
                    "warm_up": 3,
                    "steps": arguments.steps or (5 if short else 20),
                    "rounds": arguments.rounds or (1 if short else 3),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        settings = dict(configuration)
        processes = alternate_sides(settings.pop("rounds"), settings)
        return {
            "numbers": processes["no strategy"][0]["numbers"],
            "batches": [
                {"batch_size": rows, **summary_of(processes, i)}
                for i, rows in enumerate(configuration["batch_sizes"])
            ],
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records, self.network)


def alternate_sides(rounds: int, settings: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The results of each side's first process in each round; rounds begin with different sides."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
    order = list(SIDES)
    for k in tqdm(range(rounds), desc="rounds", leave=False):
        for name in order[k % len(order) :] + order[: k % len(order)]:
            results[name].append(run_side(SIDES[name], settings))
    return results


def run_side(side: Side, settings: dict[str, Any]) -> dict[str, Any]:
    """The result of the slowest process of a side; workers of one strategy take equally long.

    :raises RuntimeError: when a process fails, or there are too few cores.
    """
    from benchmarks.distributed.worker import timed_fits

    given = dict(settings)
    device_threads = given.pop("device_threads")
    given |= {"engine": side.engine, "replicas": side.replicas}
    if side.engine == "none":
        given["batch_sizes"] = [rows // side.replicas for rows in given["batch_sizes"]]
        given["replicas"] = 1
    processes = processes_of(side)
    of_workers = worker_variables(len(processes))
    calls = []
    for index, cores in enumerate(processes):
        variables = of_workers[index] if side.engine == "workers" else {}
        threads = device_threads if len(cores) > 1 else 1
        calls.append(Call({**given, "cores": cores, "threads": threads}, ONE_THREAD | variables))
    results = [dict(result) for result in from_children(timed_fits, calls, timeout=TIMEOUT)]
    if any(result["replicas"] != given["replicas"] for result in results):
        raise RuntimeError(f"{side} ran on {results[0]['replicas']} replicas")
    return max(
        results, key=lambda result: sum(statistics.median(fit["seconds"]) for fit in result["fits"])
    )


def processes_of(side: Side) -> list[list[int]]:
    """The cores of each process of a side: one for each replica.

    :raises RuntimeError: if there are too few.
    """
    mine = cores_of_this_process(side.replicas)
    return [mine] if side.engine == "devices" else [[core] for core in mine]


def summary_of(processes: dict[str, list[dict[str, Any]]], i: int) -> dict[str, Any]:
    """The figures of the i-th batch size: medians of each round's process, their ratios, and bytes.

    :param processes: the results of each side's rounds.
    """
    samples = {
        name: [statistics.median(result["fits"][i]["seconds"]) for result in results]
        for name, results in processes.items()
    }
    carried = [result["fits"][i]["loopback_bytes"] for result in processes["2 workers"]]
    known = [count for count in carried if count is not None]
    return {
        "samples": samples,
        "seconds": {name: summarise(values) for name, values in samples.items()},
        "ratios": {f"{one} / {two}": ratio(samples, one, two) for one, two in PAIRS},
        "loopback_bytes": statistics.median(known) if known else None,
    }
