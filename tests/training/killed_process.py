"""Fits of the kinds that take different ways, and a program that test_resume.py kills in them."""

import sys
import threading
from pathlib import Path
from typing import Any

import gpflow
import keras
import numpy as np
import tensorflow as tf

from interdomain import fit
from interdomain.training import FitResult
from tests.training.conftest import BayesianLine, NoisyLine, Valley

# 18 steps, killed after the checkpoint of step 15: in the third epoch, in its middle.
STEPS, STOP, EVERY = 18, 15, 5

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.sin(2 * X[:, :1])


def svgp() -> gpflow.models.SVGP:
    kernel, likelihood = gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian()
    return gpflow.models.SVGP(kernel, likelihood, X[:5].copy(), num_data=len(X))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return X, Y


def dataset() -> tf.data.Dataset:
    """In an order that differs between epochs; the seed of TensorFlow is a part of it."""
    tf.random.set_seed(1)
    slices = tf.data.Dataset.from_tensor_slices((X, Y))
    return slices.shuffle(len(X), seed=3, reshuffle_each_iteration=True).batch(8)


KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "minibatches": (svgp, arrays, {"batch_size": 8, "optimizer": 0.02}),
    "Dataset": (BayesianLine, dataset, {"optimizer": gpflow.optimizers.NaturalGradient(0.3)}),
    "keras 3": (NoisyLine, arrays, {"batch_size": 8, "optimizer": keras.optimizers.Adam}),
    "l-bfgs": (Valley, arrays, {"steps": 300, "options": {"ftol": 0.0, "gtol": 1e-9}}),
}


def run(kind: str, folder: Path, **more: Any) -> tuple[Any, FitResult]:
    make, data, arguments = KINDS[kind]
    model = make()
    if callable(arguments.get("optimizer")):
        arguments = {**arguments, "optimizer": arguments["optimizer"](0.02)}
    arguments = {"steps": STEPS, "progress": False, **arguments, **more}
    arguments["options"] = {"every": EVERY, **arguments.get("options", {})}
    return model, fit(model, data(), checkpoint_dir=folder / kind, **arguments)


if __name__ == "__main__":
    together = threading.Barrier(len(KINDS) + 1)

    def wait(step: int, model: Any) -> None:
        if step == STOP:
            together.wait(200)
            threading.Event().wait()  # to be killed

    stopped: dict[str, Any] = {"callbacks": [wait]}
    for kind in KINDS:
        arguments = (kind, Path(sys.argv[1]))
        threading.Thread(target=run, args=arguments, kwargs=stopped, daemon=True).start()
    together.wait(200)
    print("waiting", flush=True)
    threading.Event().wait()
