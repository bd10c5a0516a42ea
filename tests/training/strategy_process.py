"""Run by test_strategy.py: logical devices, which a process has to ask for before it uses any."""

# ruff: noqa: E402
import json
from typing import Any

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

import gpflow
import numpy as np
from gpflow.keras import tf_keras

import interdomain as idm
from tests.training.strategy_models import Arrays, X, Y, difference, moves, svgp, unconstrained

strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(2)])
found: dict[str, Any] = {"replicas": strategy.num_replicas_in_sync}


def learnt(q_diag: bool, data: Any, used: Any, **arguments: Any) -> Arrays:
    with used.scope() if used else tf.name_scope(""):
        model = svgp(q_diag)
        optimizer = tf_keras.optimizers.SGD(1e-4)
    start = unconstrained(model)
    natural = gpflow.optimizers.NaturalGradient(0.3)
    idm.fit(model, data, optimizer=(natural, optimizer), progress=False, **arguments)
    return moves(model, start)


cases: dict[str, tuple[bool, Any, dict[str, Any]]] = {
    "diagonal": (True, (X, Y), {"batch_size": 33, "steps": 2}),
    "few rows": (False, tf.data.Dataset.from_tensor_slices((X, Y)).batch(1), {"steps": 2}),
}
for case, (q_diag, data, arguments) in cases.items():
    both = (learnt(q_diag, data, used, **arguments) for used in (strategy, None))
    found[f"case {case}"] = difference(*both)

with strategy.scope():
    inside, outside = svgp(), svgp()
    holder = gpflow.models.GPR((X, Y), gpflow.kernels.Matern32())
    too_fast = tf_keras.optimizers.SGD(1e200)
wrong: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "model outside": (outside, (X, Y), {"batch_size": 33}),
    "optimizer outside": (inside, (X, Y), {"optimizer": tf_keras.optimizers.SGD(1e-4)}),
    "l-bfgs": (inside, (X, Y), {}),
    "data held": (holder, None, {"optimizer": 0.01}),
    "not finite": (inside, (X, Y), {"optimizer": too_fast, "steps": 3}),
}
outside.kernel.variance = gpflow.Parameter(1.0)
start = unconstrained(inside)
for name, (model, data, arguments) in wrong.items():
    try:
        idm.fit(model, data, progress=False, **arguments)
    except (ValueError, idm.training.NonFiniteError) as error:
        found[name] = str(error)
pairs = zip(unconstrained(inside), start, strict=True)
found["as before"] = all(np.array_equal(a, b) for a, b in pairs)
print(json.dumps(found))
