"""The pass over memory-mapped rows, by one process and shared by the workers of a strategy."""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import Call, from_children
from benchmarks._lib.data import Array
from benchmarks._lib.processes import ONE_THREAD, bind_to, cores_of_this_process, worker_variables
from benchmarks._lib.timing import ratio, summarise

TIMEOUT = 900.0  # seconds, of the processes of one pass


def compare(
    folder: str, max_degree: int, truncated: bool, workers: int, rounds: int
) -> dict[str, Any]:
    """Seconds of the pass by one process on one core and by `workers` processes on a core each, in
    turn, and the difference of their sums."""
    samples: dict[str, list[float]] = {"one": [], "shared": []}
    with tempfile.TemporaryDirectory() as temporary:
        files = {side: Path(temporary) / f"{side}.npz" for side in samples}
        checksums = set()
        for k in range(rounds):
            for side in ("one", "shared") if k % 2 == 0 else ("shared", "one"):
                number = 1 if side == "one" else workers
                variables = worker_variables(number) if side == "shared" else [{}]
                calls = [
                    Call(
                        {
                            "folder": folder,
                            "max_degree": max_degree,
                            "truncated": truncated,
                            "shared": side == "shared",
                            "core": core,
                            "output": str(files[side]) if index == 0 else None,
                        },
                        ONE_THREAD | variables[index],
                    )
                    for index, core in enumerate(cores_of_this_process(number))
                ]
                results = from_children(timed_pass, calls, timeout=TIMEOUT)
                samples[side].append(max(result["seconds"] for result in results))
                if side == "shared":
                    checksums.update(result["checksum"] for result in results)
        one, shared = (sums_in(files[side]) for side in ("one", "shared"))
    return {
        "num_rows": results[0]["num_rows"],
        "num_inducing": results[0]["num_inducing"],
        "seconds": {side: summarise(values) for side, values in samples.items()},
        "ratio": ratio(samples, "one", "shared"),
        "difference": difference(one, shared),
        "same_bits_on_all_workers": len(checksums) == 1,
        "bytes_shared": results[0]["num_bytes"] * workers,
    }


def timed_pass(
    folder: str, max_degree: int, truncated: bool, shared: bool, core: int, output: str | None
) -> dict[str, Any]:
    """One process of a pass, in seconds from the moment at which all have built their models.

    :param output: where to save the statistics.
    """
    bind_to([core])
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if shared else None
    import gpflow

    import interdomain as idm
    from benchmarks._lib.row_files import open_rows
    from benchmarks.airline_scale.fit import harmonic_model

    rows = open_rows(Path(folder))
    data = (rows.X_train, rows.Y_train)
    if strategy is not None:
        resolver = strategy.cluster_resolver
        number, index = len(resolver.cluster_spec().as_dict()["worker"]), resolver.task_id
        ends = [len(data[0]) * k // number for k in (index, index + 1)]
        data = tuple(array[slice(*ends)] for array in data)
    # The first pass compiles the features; and what is shared takes the workers to one moment.
    for last in (False, True):
        few = data if last else tuple(array[:20_000] for array in data)
        model = harmonic_model(few, max_degree, truncated=truncated)
        for parameter in model.feature_parameters.values():
            gpflow.set_trainable(parameter, False)
        start = time.perf_counter()
        statistics = model.statistics
        if strategy is not None:
            statistics = idm.distributed.all_reduce(statistics, strategy)
        seconds = time.perf_counter() - start
    if output is not None:
        statistics.save(output)
    parts = list(statistics.sums.values())
    return {
        "seconds": seconds,
        "num_rows": statistics.num_rows,
        "num_inducing": int(model.inducing_variable.num_inducing),
        "num_bytes": sum(part.nbytes for part in parts),
        "checksum": zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)),
    }


def sums_in(path: Path) -> tuple[Array, Array]:
    """The matrix and the diagonal's terms in a file of statistics."""
    with np.load(path) as arrays:
        return arrays["gram"], arrays["diagonal"]


def difference(one: Sequence[Array], other: Sequence[Array]) -> float:
    """The largest difference of two sets of sums: of the matrix relative to what an entry can be,
    the root of the product of its two diagonal entries; of the terms to themselves."""
    roots = np.sqrt(np.diagonal(one[0]))
    of_gram = np.abs(one[0] - other[0]) / np.outer(roots, roots)
    of_terms = np.abs(one[1] - other[1]) / np.abs(one[1])
    return float(max(np.max(of_gram), np.max(of_terms)))
