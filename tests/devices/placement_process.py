"""Run by ``test_placement`` in a process of its own, which has four logical CPUs: prints JSON."""

import json
import tempfile
from collections import Counter
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.inducing_variables import InducingPoints
from tensorflow.types.experimental import ConcreteFunction

from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import HVGP, AdditiveSVGP
from interdomain.transforms import Negation
from tests.posteriors.graph_ops import graph_nodes

NUM_DATA, LATENT, SIZE = 37, 2, 6
HEAVY = ("Cholesky", "MatrixTriangularSolve", "MatMul", "BatchMatMulV2", "BatchMatMulV3")


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_DATA, 4))
    return X, np.sin(X[:, :LATENT]) + 0.1 * rng.normal(size=(NUM_DATA, LATENT))


def harmonic(devices: Any) -> HVGP:
    """Four blocks, with points of their own."""
    size = 4
    rng = np.random.default_rng(1)
    base = gpflow.kernels.RationalQuadratic(variance=1.2, lengthscales=1.3)
    means = [rng.normal(size=(SIZE, LATENT)) for _ in range(size)]
    roots = [0.5 * np.eye(SIZE) + 0.1 * rng.normal(size=(LATENT, SIZE, SIZE)) for _ in range(size)]
    return HVGP(
        base,
        gpflow.likelihoods.Gaussian(0.2),
        rng.normal(size=(size, SIZE, 4)),
        [Negation(d) for d in range(2)],
        num_latent_gps=LATENT,
        q_mu=means,
        q_sqrt=[np.tril(root) for root in roots],
        devices=devices,
    )


def two_sizes(devices: Any) -> AdditiveSVGP:
    """A block of five and one of nine."""
    X = data()[0]
    return AdditiveSVGP(
        gpflow.kernels.Matern32() + gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(0.2),
        SumInducingVariables([InducingPoints(X[:5].copy()), InducingPoints(X[:9].copy())]),
        num_latent_gps=LATENT,
        whiten=False,
        devices=devices,
    )


def step(model: AdditiveSVGP, values: tuple) -> tuple[tf.Tensor, list[tf.Tensor]]:
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        value = model.elbo(values)
    return value, tape.gradient(value, variables)


def compiled_step(model: AdditiveSVGP) -> ConcreteFunction:
    values = data()
    return tf.function(lambda: step(model, values), autograph=False).get_concrete_function()


def device_index(name: str) -> str:
    """ "1" for ".../device:CPU:1", "" for none."""
    return name.rsplit(":", 1)[-1] if name else ""


def operations(graph: tf.Graph) -> dict[str, dict[str, int]]:
    """For each heavy type, how many nodes there are on each device."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in HEAVY}
    for node in graph_nodes(graph):
        if node.op in counts:
            counts[node.op][device_index(node.device)] += 1
    return {name: dict(counter) for name, counter in counts.items() if counter}


def travelling(graph: tf.Graph) -> list[tuple[str, list[int | None]]]:
    """Types and static shapes of what leaves a device for another, or for where it is not said.

    Constants and readings of variables are not results; handles and control are not numbers.
    """
    found = []
    for operation in graph.get_operations():
        for tensor in operation.inputs:
            source = tensor.op
            if not source.device or source.device == operation.device:
                continue
            if source.type in ("Const", "ReadVariableOp") or not tensor.dtype.is_floating:
                continue
            shape = tensor.shape
            found.append((source.type, list(shape) if shape.rank is not None else [None]))
    return found


def largest_difference(
    model: AdditiveSVGP, compiled: ConcreteFunction, single: AdditiveSVGP
) -> dict[str, float]:
    """Relative to the largest entry; what has one device is not compiled, which takes most of the
    time."""
    values = data()
    X = values[0][:7] + 0.1
    elbo, gradients = compiled()
    with disable_check_shapes():
        expected, expected_gradients = step(single, values)
    pairs = {
        "elbo": [(elbo, expected)],
        "gradients": list(zip(gradients, expected_gradients, strict=True)),
        "predict_f": list(zip(model.predict_f(X), single.predict_f(X), strict=True)),
        "cached": list(zip(model.posterior().predict_f(X), single.predict_f(X), strict=True)),
        "kl": [(model.prior_kl(), single.prior_kl())],
    }
    joint = [m.predict_f(X, full_cov=True) for m in (model, single)]
    pairs["joint"] = list(zip(*joint, strict=True))
    return {
        name: max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in values)
        for name, values in pairs.items()
    }


def restored(model: HVGP, other: HVGP) -> bool:
    """Whether another placed model has the parameters of a checkpoint of the first."""
    model.q_mu[0].assign(model.q_mu[0] + 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).write(f"{folder}/checkpoint")
        tf.train.Checkpoint(model=other).restore(path).expect_partial()
    pairs = zip(model.trainable_variables, other.trainable_variables, strict=True)
    return all(bool(np.all(one == two)) for one, two in pairs)


def variables_of(model: HVGP) -> dict[str, list[str]]:
    points = model.inducing_variable.Z_per_component
    lists = {"q_mu": model.q_mu, "q_sqrt": model.q_sqrt, "Z": points}
    return {
        name: [device_index(p.unconstrained_variable.device) for p in parameters]
        for name, parameters in lists.items()
    }


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    names = ["CPU:0", "CPU:2"]
    model = harmonic(names)
    compiled = compiled_step(model)
    result: dict[str, Any] = {
        "four": {
            "operations": operations(compiled.graph),
            "travelling": travelling(compiled.graph),
            "variables": variables_of(model),
            "differences": largest_difference(model, compiled, harmonic(None)),
            "restored": restored(model, harmonic(names)),
        }
    }
    model = two_sizes(["CPU:1", "CPU:3"])
    compiled = compiled_step(model)
    result["two sizes"] = {
        "cholesky": [
            [device_index(operation.device), int(operation.outputs[0].shape[-1])]
            for operation in compiled.graph.get_operations()
            if operation.type == "Cholesky"
        ],
        "points": [
            [device_index(block.Z.unconstrained_variable.device), int(block.Z.shape[0])]
            for block in model.inducing_variable.inducing_variables
        ],
        "differences": largest_difference(model, compiled, two_sizes(None)),
    }
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
