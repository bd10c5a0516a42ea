"""Our basis of spherical harmonics against the package spherical-harmonics-basis.

10,000 points on the sphere in R^d, all degrees up to a maximum, float64; forward, and forward with
the gradient to the points:
ours        interdomain.sphere.spherical_harmonics (TensorFlow);
peer numpy  the peer on NumPy arrays (forward only);
peer tf     the peer on TensorFlow tensors.
TensorFlow sides are compiled by tf.function. Times are seconds, median [quartiles] over rounds in
which the sides take turns. The error is that of the addition theorem,
max |sum_j Y_lj(x) Y_lj(x') - N(d, l) P_l(x'x)| / N(d, l), over all degrees l and pairs of
200 points (random ones and the axes).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, MissingPeerError
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, ratio, summarise

SIZES = [(3, 33), (9, 4), (15, 4), (20, 3)]
TARGETS = {(9, 4): 7.0, (20, 3): 7.0}  # quickest peer / ours, forward
SIDES = {"forward": ("ours", "peer numpy", "peer tf"), "gradient": ("ours", "peer tf")}


class Basis(Benchmark):
    __doc__ = __doc__
    name = "basis"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 11")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for dimension, max_degree in [(9, 2)] if arguments.short else SIZES:
            shape = {"dimension": dimension, "max_degree": max_degree}
            for dtype in ("float64", "float32"):
                yield {"measure": "error", **shape, "dtype": dtype, "seed": 0}
            for work in SIDES:
                yield {
                    "measure": work,
                    **shape,
                    "rows": 1_000 if arguments.short else 10_000,
                    "rounds": arguments.rounds or (3 if arguments.short else 11),
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        require_peer()
        shape = {key: configuration[key] for key in ("dimension", "max_degree", "seed")}
        if configuration["measure"] == "error":
            return {
                "errors": {
                    side: addition_error(side, **shape, dtype=configuration["dtype"])
                    for side in SIDES["forward"]
                }
            }
        work = {"work": configuration["measure"], **shape, "rows": configuration["rows"]}
        sides = SIDES[configuration["measure"]]
        memory = {side: peak_bytes(evaluation, side=side, **work) for side in sides}
        samples = alternate(
            {side: evaluation(side=side, **work) for side in sides},
            rounds=configuration["rounds"],
            description="rounds",
        )
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratios": {side: ratio(samples, side, "ours") for side in sides if side != "ours"},
            "peak_bytes": memory,
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def require_peer() -> None:
    """Raise an error that names the remedy unless the peer is installed."""
    try:
        import spherical_harmonics  # noqa: F401
    except ImportError as error:
        raise MissingPeerError(
            "this benchmark compares with the package spherical-harmonics-basis, which is not "
            "installed: pip install 'interdomain[benchmarks]'"
        ) from error


def basis_function(side: str, dimension: int, max_degree: int) -> Callable[[Any], Any]:
    """The basis of one side, from points [N, d]: ours returns [M, N], the peer's [N, M]."""
    if side == "ours":
        import interdomain as idm

        degrees = list(range(max_degree + 1))
        return lambda X: idm.sphere.spherical_harmonics(X, degrees)
    import spherical_harmonics
    import spherical_harmonics.tensorflow  # registers the backend

    function: Callable[[Any], Any] = spherical_harmonics.SphericalHarmonics(
        dimension, list(range(max_degree + 1))
    )
    return function


def evaluation(
    *, side: str, work: str, dimension: int, max_degree: int, rows: int, seed: int
) -> Callable[[], Any]:
    """The call to be timed: `work` is "forward" or "gradient"; compiled and traced."""
    basis = basis_function(side, dimension, max_degree)
    points = unit_vectors(rows, dimension, seed)
    if side == "peer numpy":
        return lambda: basis(points)
    import tensorflow as tf

    X = tf.constant(points)
    count = sum(harmonics_of_degree(dimension, degree) for degree in range(max_degree + 1))
    shape = (count, rows) if side == "ours" else (rows, count)
    cotangent = tf.constant(np.random.default_rng(seed).normal(size=shape))

    @tf.function
    def forward(X: tf.Tensor, cotangent: tf.Tensor) -> Any:
        return basis(X)

    @tf.function
    def gradient(X: tf.Tensor, cotangent: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(X)
            values = basis(X)
        return values, tape.gradient(values, X, output_gradients=cotangent)

    function = {"forward": forward, "gradient": gradient}[work]
    function.get_concrete_function(X, cotangent)
    return lambda: function(X, cotangent)


def unit_vectors(rows: int, dimension: int, seed: int) -> Array:
    """Random points on the sphere, [rows, dimension]."""
    X = np.random.default_rng(seed).normal(size=(rows, dimension))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def addition_error(
    side: str, dimension: int, max_degree: int, *, seed: int, dtype: str, rows: int = 200
) -> float:
    """The largest error of the addition theorem, relative to each level's number of harmonics."""
    axes = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    points = np.concatenate([axes, unit_vectors(rows - len(axes), dimension, seed)])
    points = points.astype(dtype)
    basis = basis_function(side, dimension, max_degree)
    if side == "peer numpy":
        values = np.asarray(basis(points))
    else:
        import tensorflow as tf

        values = basis(tf.constant(points)).numpy()
    features = np.asarray(values if side == "ours" else values.T, dtype=np.float64)  # [M, N]

    # Exact unit vectors are compared: rounding the points to float32 is not the basis's error.
    exact = points.astype(np.float64)
    exact = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    cosines = np.clip(exact @ exact.T, -1.0, 1.0)
    largest, start = 0.0, 0
    for degree, polynomial in enumerate(normalised_gegenbauer(cosines, dimension, max_degree)):
        count = harmonics_of_degree(dimension, degree)
        level = features[start : start + count]
        largest = max(largest, float(np.max(np.abs(level.T @ level / count - polynomial))))
        start += count
    if start != len(features):
        raise RuntimeError(f"{side} has {len(features)} harmonics, expected {start}")
    return largest


def harmonics_of_degree(dimension: int, degree: int) -> int:
    """N(d, l), the number of harmonics of one degree."""
    from math import comb

    lower = comb(degree + dimension - 3, dimension - 1) if degree >= 2 else 0
    return comb(degree + dimension - 1, dimension - 1) - lower


def normalised_gegenbauer(cosines: Array, dimension: int, max_degree: int) -> Iterable[Array]:
    """P_0, P_1, ... with P_l(1) = 1, by the three-term recurrence, stable on [-1, 1]."""
    previous, current = np.zeros_like(cosines), np.ones_like(cosines)
    for degree in range(max_degree + 1):
        yield current
        # (l + d - 2) P_{l+1} = (2 l + d - 2) t P_l - l P_{l-1}
        following = (2 * degree + dimension - 2) * cosines * current - degree * previous
        previous, current = current, following / (degree + dimension - 2)


def table_of(records: Sequence[Record]) -> str:
    timings = [r for r in records if r["configuration"]["measure"] != "error"]
    errors = [r for r in records if r["configuration"]["measure"] == "error"]
    rows = []
    for record in sorted(timings, key=_position):
        run, result = record["configuration"], record["result"]
        size = (run["dimension"], run["max_degree"])
        quickest = min((value["median"] for value in result["ratios"].values()), default=0.0)
        target = TARGETS.get(size) if run["measure"] == "forward" else None
        verdict = "met" if target is not None and quickest >= target else "NOT met"
        for side in SIDES[run["measure"]]:
            gain = result["ratios"].get(side)
            rows.append(
                (
                    *size,
                    run["rows"],
                    run["measure"],
                    side,
                    spread(result["seconds"][side]),
                    "" if gain is None else spread(gain),
                    megabytes(result["peak_bytes"][side]),
                    f">= {target:g}x: {verdict}" if side == "ours" and target else "",
                )
            )
    headers = ("d", "degree", "points", "work", "side", "seconds", "side / ours", "peak MB")
    text = "Basis of spherical harmonics: median [quartiles].\n\n"
    text += markdown((*headers, "target (quicker peer / ours)"), rows)
    error_rows = []
    for record in sorted(errors, key=_position):
        run, result = record["configuration"], record["result"]
        shown = [_error(result["errors"].get(side)) for side in SIDES["forward"]]
        error_rows.append((run["dimension"], run["max_degree"], run["dtype"], *shown))
    text += "\n\nError of the addition theorem, relative to the harmonics of the degree.\n\n"
    return text + markdown(("d", "degree", "dtype", *SIDES["forward"]), error_rows)


def _position(record: Record) -> tuple[Any, ...]:
    run = record["configuration"]
    measure = (*SIDES, "error").index(run["measure"])
    return run["dimension"], run["max_degree"], measure, str(run.get("dtype")), run.get("rows", 0)


def _error(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.1e}"


if __name__ == "__main__":
    sys.exit(Basis().main())
