"""Covariances of a convolutional kernel, and a training step with it, against GPflow's.

ours    interdomain's Convolutional and InducingPatches;
gpflow  gpflow.kernels.Convolutional and gpflow.inducing_variables.InducingPatches, the same kernel.

100 images of 28 x 28 (uniform noise: the work does not depend on the values), patches of 5 x 5, 200
inducing patches, a weight for each patch, float64, compiled:
K_diag  the variances k(x, x) of the images;
Kuf     the covariances of the inducing patches with the images;
K       of 20 images with one another (forward only);
elbo    of gpflow's SVGP with 10 latent GPs and a MultiClass likelihood.
"gradient" is the value and its gradient to all parameters: of the kernel, the weights, the inducing
patches (Kuf, elbo) and q (elbo).

Measures: agreement (largest difference of values, and of gradients, relative to the largest), peak
memory (a process of its own for each side), time (sides take turns).
Times are seconds, median [quartiles] over rounds in which the sides take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, ratio, summarise

SIDES = OURS, GPFLOW = ("ours", "gpflow")
MEASURES = ("agreement", "memory", "time")
KERNELS = ("SquaredExponential", "Matern52")
IMAGE, PATCH, LATENT, NUM_DATA = (28, 28), (5, 5), 10, 60_000
NUM_IMAGES = 100
WORK = (
    ("K_diag", "forward"),
    ("K_diag", "gradient"),
    ("Kuf", "forward"),
    ("Kuf", "gradient"),
    ("elbo", "gradient"),
    ("K", "forward"),
)
TARGET_SPEED = {  # gpflow / ours
    ("K_diag", "gradient"): 3.5,
    ("Kuf", "forward"): 1.0,
    ("Kuf", "gradient"): 1.0,
    ("elbo", "gradient"): 2.0,
}
TARGET_MEMORY = {("K_diag", "gradient"): 0.05}  # ours / gpflow
TARGET_AGREEMENT = 1e-10


class ConvCovariances(Benchmark):
    __doc__ = __doc__
    name = "conv_covariances"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=None, help="default 11")
        parser.add_argument("--measures", type=names(MEASURES, "measures"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for measure in arguments.measures or MEASURES:
            for kernel in KERNELS[:1] if short else KERNELS:
                for quantity, direction in WORK:
                    if short and measure == "memory" and direction == "forward":
                        continue  # starting a process takes longest
                    run = {
                        "measure": measure,
                        "kernel": kernel,
                        "quantity": quantity,
                        "direction": direction,
                        "images": 5 if short else 20 if quantity == "K" else NUM_IMAGES,
                        "num_inducing": 20 if short else 200,
                        "seed": 0,
                    }
                    if measure == "time":
                        run["rounds"] = arguments.rounds or (3 if short else 11)
                    yield run

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {k: v for k, v in configuration.items() if k not in ("measure", "rounds")}
        if configuration["measure"] == "memory":
            return {"peak_bytes": {side: peak_bytes(work, side=side, **given) for side in SIDES}}
        sides = {side: work(side=side, **given) for side in SIDES}
        if configuration["measure"] == "agreement":
            return {"disagreement": disagreement(sides[OURS](), sides[GPFLOW]())}
        samples = alternate(sides, rounds=configuration["rounds"], description="rounds")
        return {
            "seconds": {side: summarise(values) for side, values in samples.items()},
            "ratio": ratio(samples, GPFLOW, OURS),
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def work(
    *,
    side: str,
    kernel: str,
    quantity: str,
    direction: str,
    images: int,
    num_inducing: int,
    seed: int,
) -> Callable[[], Any]:
    """The traced computation of one side: the value and, if asked for, its gradients."""
    import gpflow
    import tensorflow as tf
    from gpflow.utilities import parameter_dict

    generator = np.random.default_rng(seed)
    model = build_model(side, kernel, num_inducing, generator)
    X = tf.constant(generator.random((images, np.prod(IMAGE))))
    Y = tf.constant(generator.integers(0, LATENT, (images, 1)).astype(float))
    f, u = model.kernel, model.inducing_variable
    value: Callable[[], tf.Tensor] = {
        "K_diag": lambda: f(X, full_cov=False),
        "Kuf": lambda: gpflow.covariances.Kuf(u, f, X),
        "K": lambda: f(X),
        "elbo": lambda: model.elbo((X, Y)),
    }[quantity]
    module = {"K_diag": f, "K": f, "Kuf": (f, u), "elbo": model}[quantity]
    parts = module if isinstance(module, tuple) else (module,)
    variables = [
        parameter.unconstrained_variable
        for part in parts
        for _, parameter in sorted(parameter_dict(part).items())
        if parameter.trainable
    ]
    upstream = tf.constant(generator.normal(size=value().shape))

    @tf.function
    def compiled() -> list[tf.Tensor]:
        if direction == "forward":
            return [value()]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            values = value()
        return [values, *tape.gradient(values, variables, output_gradients=upstream)]

    compiled.get_concrete_function()
    return lambda: compiled()


def build_model(side: str, kernel: str, num_inducing: int, generator: np.random.Generator) -> Any:
    """An SVGP of gpflow with the kernel and the inducing patches of one side."""
    import gpflow

    if side == OURS:
        import interdomain as idm

        Convolutional: Any = idm.kernels.Convolutional
        InducingPatches: Any = idm.inducing_variables.InducingPatches
    else:
        Convolutional = gpflow.kernels.Convolutional
        InducingPatches = gpflow.inducing_variables.InducingPatches
    base = getattr(gpflow.kernels, kernel)(variance=20.0, lengthscales=2.0)
    f = Convolutional(base, list(IMAGE), list(PATCH))
    f.weights.assign(generator.normal(1.0, 0.3, f.weights.shape))
    roots = np.tril(generator.normal(size=(LATENT, num_inducing, num_inducing)) / num_inducing)
    return gpflow.models.SVGP(
        f,
        gpflow.likelihoods.MultiClass(LATENT),
        InducingPatches(generator.random((num_inducing, np.prod(PATCH)))),
        num_latent_gps=LATENT,
        q_mu=generator.normal(size=(num_inducing, LATENT)),
        q_sqrt=roots + 0.5 * np.eye(num_inducing),
        num_data=NUM_DATA,
    )


def disagreement(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The largest difference, of values relative to the largest value, of gradients to the largest
    entry of all gradients (with a whitened q, the one to the variance is zero but for the jitter).
    """
    if len(ours) != len(theirs):
        raise RuntimeError(f"{len(ours)} tensors against {len(theirs)}")

    def of(some: Sequence[Any], others: Sequence[Any]) -> float:
        differences = [np.max(np.abs(a - b)) for a, b in zip(some, others, strict=True)]
        return float(max(differences) / max(np.max(np.abs(b)) for b in others))

    ours, theirs = ([np.asarray(value) for value in side] for side in (ours, theirs))
    parts = [slice(0, 1), slice(1, None)] if len(ours) > 1 else [slice(0, 1)]
    return max(of(ours[part], theirs[part]) for part in parts)


def table_of(records: Sequence[Record]) -> str:
    """One row per kernel and work of each size."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in sorted(records, key=lambda record: str(record.get("finished_at", ""))):
        run = record["configuration"]
        key = tuple(run[name] for name in ("quantity", "direction", "images", "kernel"))
        found.setdefault(key, {})[run["measure"]] = record["result"]
    order = {work: position for position, work in enumerate(WORK)}
    rows = [
        _row(key, found[key])
        for key in sorted(found, key=lambda key: (order[key[:2]], key[2], KERNELS.index(key[3])))
    ]
    headers = (
        *("what", "pass", "images", "kernel", "ours s", "gpflow s", "gpflow / ours"),
        *("ours MB", "gpflow MB", "largest difference", "targets"),
    )
    return (
        "Convolutional kernel, 28 x 28, patches 5 x 5: median [quartiles]; MB is the peak of one "
        "call.\n\n" + markdown(headers, rows)
    )


def _row(key: tuple[Any, ...], measures: dict[str, Any]) -> tuple[Any, ...]:
    # Targets are for the full size.
    of_work, verdicts = key[:2] if key[2] == NUM_IMAGES else None, []
    time, memory = measures.get("time"), measures.get("memory", {}).get("peak_bytes")
    difference = measures.get("agreement", {}).get("disagreement")
    if time is not None and of_work in TARGET_SPEED:
        target = TARGET_SPEED[of_work]
        verdicts.append(f">= {target:g}x: {_met(time['ratio']['median'] >= target)}")
    if memory is not None and of_work in TARGET_MEMORY:
        share, target = memory[OURS] / memory[GPFLOW], TARGET_MEMORY[of_work]
        verdicts.append(f"memory {share:.1%} <= {target:.0%}: {_met(share <= target)}")
    if difference is not None and difference > TARGET_AGREEMENT:
        verdicts.append(f"difference <= {TARGET_AGREEMENT:g}: NOT met")
    return (
        *key,
        *("" if time is None else spread(time["seconds"][side]) for side in SIDES),
        "" if time is None else spread(time["ratio"]),
        *("" if memory is None else megabytes(memory[side]) for side in SIDES),
        "" if difference is None else f"{difference:.0e}",
        "; ".join(verdicts),
    )


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"


if __name__ == "__main__":
    sys.exit(ConvCovariances().main())
