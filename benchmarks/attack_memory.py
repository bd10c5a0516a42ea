"""Does the memory of a process stay flat, and do threads get the same predictions?

Each case in a fresh process, on an SVGP with spherical harmonics and on an OrthogonalSVGP:
steps      one fit of 2,000 steps
fits       200 fits of one model
models     200 models, each built, fitted for two steps, asked for a prediction and dropped
threads    predictions of one model (a cached posterior and the model itself) by four threads at
           once, 200 times each, compared bit by bit with those of one thread

MB are those of resident memory after garbage was collected, when a tenth was done and at the end:
what the first tenth takes is TensorFlow's own, and what all models share.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown, megabytes

CASES = ("steps", "fits", "models", "threads")
MODELS = ("svgp", "orthogonal_svgp")
REPEATS = {"steps": 2_000, "fits": 200, "models": 200, "threads": 200}
SHORT_REPEATS = {"steps": 40, "fits": 10, "models": 10, "threads": 10}
NUM_THREADS = 4


class AttackMemory(Benchmark):
    __doc__ = __doc__
    name = "attack_memory"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cases", type=names(CASES, "cases"), default=None)
        parser.add_argument("--models", type=names(MODELS, "models"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        repeats = SHORT_REPEATS if arguments.short else REPEATS
        for case in arguments.cases or CASES:
            for model in arguments.models or (MODELS[:1] if arguments.short else MODELS):
                yield {"case": case, "model": model, "repeats": repeats[case], "seed": 0}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        result: dict[str, Any] = from_child(measure, **configuration)
        return result

    def table(self, records: Sequence[Record]) -> str:
        rows = []
        for record in records:
            run, result = record["configuration"], record["result"]
            at = [result.get(name) for name in ("first_bytes", "last_bytes")]
            growth = None if at[0] is None else (at[1] - at[0]) / (0.9 * run["repeats"])
            rows.append(
                (
                    run["case"],
                    run["model"],
                    run["repeats"],
                    *(megabytes(value) if value is not None else "" for value in at),
                    "" if growth is None else f"{growth / 1e6:.3f}",
                    {None: "", True: "yes", False: "NO"}[result.get("same")],
                )
            )
        headers = ("case", "model", "times", "MB after a tenth", "MB at the end", "MB each", "same")
        return markdown(headers, rows)


def measure(*, case: str, model: str, repeats: int, seed: int) -> dict[str, Any]:
    """The figures of one case, in this process."""
    import numpy as np

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(200, 3))
    data = X, np.sin(X[:, :1]) + 0.1 * generator.normal(size=(200, 1))
    return {"steps": _steps, "fits": _fits, "models": _models, "threads": _threads}[case](
        lambda: build(model, data), data, repeats
    )


def build(model: str, data: Any) -> Any:
    """A small model, of 16 harmonics or of these and ten points."""
    import gpflow
    import numpy as np

    import interdomain as idm

    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(3))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree=2)
    likelihood, num_data = gpflow.likelihoods.Gaussian(0.1), len(data[0])
    if model == "svgp":
        return gpflow.models.SVGP(kernel, likelihood, harmonics, num_data=num_data)
    points = gpflow.inducing_variables.InducingPoints(data[0][:10].copy())
    return idm.models.OrthogonalSVGP(kernel, likelihood, harmonics, points, num_data=num_data)


def _fit(model: Any, data: Any, steps: int, **arguments: Any) -> None:
    import warnings

    from interdomain.training import fit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what the few harmonics leave out
        fit(model, data, batch_size=100, steps=steps, progress=False, **arguments)


class Watch:
    """Resident memory after a tenth of the repeats, and at the end."""

    def __init__(self, repeats: int) -> None:
        self._repeats, self.result = repeats, dict[str, Any]()

    def after(self, done: int) -> None:
        import gc

        from benchmarks._lib.memory import resident_bytes

        for name, when in (("first_bytes", self._repeats // 10), ("last_bytes", self._repeats)):
            if done == when:
                gc.collect()
                self.result[name] = resident_bytes()


def _steps(make: Callable[[], Any], data: Any, repeats: int) -> dict[str, Any]:
    watch = Watch(repeats)
    _fit(make(), data, repeats, callbacks=[lambda step, *_: watch.after(step)], every=1)
    return watch.result


def _fits(make: Callable[[], Any], data: Any, repeats: int) -> dict[str, Any]:
    watch, model = Watch(repeats), make()
    for done in range(1, repeats + 1):
        _fit(model, data, 2)
        watch.after(done)
    return watch.result


def _models(make: Callable[[], Any], data: Any, repeats: int) -> dict[str, Any]:
    watch = Watch(repeats)
    for done in range(1, repeats + 1):
        model = make()
        _fit(model, data, 2)
        model.predict_f(data[0])
        del model
        watch.after(done)
    return watch.result


def _threads(make: Callable[[], Any], data: Any, repeats: int) -> dict[str, Any]:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    model = make()
    _fit(model, data, 20)
    posterior = model.posterior()

    def predict(_: int = 0) -> list[Any]:
        of_both = (posterior.predict_f(data[0]), model.predict_y(data[0]))
        return [np.asarray(value) for pair in of_both for value in pair]

    alone = predict()
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        found = list(pool.map(predict, range(NUM_THREADS * repeats)))
    same = all(
        np.array_equal(one, other)
        for values in found
        for one, other in zip(values, alone, strict=True)
    )
    return {"same": same}


if __name__ == "__main__":
    sys.exit(AttackMemory().main())
