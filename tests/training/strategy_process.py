"""Run by test_strategy.py: as many logical devices as the argument says, in its own process."""

import json
import sys

import tensorflow as tf

NUM_DEVICES = int(sys.argv[1])
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES,
)

from gpflow.keras import tf_keras  # noqa: E402

import interdomain as idm  # noqa: E402
from tests.training.strategy_models import MODELS, X, Y, difference, svgp  # noqa: E402

strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(NUM_DEVICES)])
found: dict[str, object] = {"replicas": strategy.num_replicas_in_sync}
cases = {
    "svgp": {"batch_size": 33},
    "svgp, natural gradients": {"batch_size": 33, "natural_gradient": 0.3},
    "svgp, fewer rows than devices": {"batch_size": 3},
    "hvgp, natural gradients": {"batch_size": 33, "natural_gradient": 0.3},
    "orthogonal": {},
}
for name, arguments in cases.items():
    build = MODELS[name.split(",")[0]]
    fitted = []
    for used in (strategy, None):
        with strategy.scope() if used else tf.name_scope(""):
            model = build()
            optimizer = tf_keras.optimizers.SGD(1e-4)
        idm.training.fit(
            model, (X, Y), optimizer=optimizer, steps=5, strategy=used, progress=False, **arguments
        )
        fitted.append(model)
    found[f"case {name}"] = difference(*fitted)

outside = svgp()
with strategy.scope():
    inside = svgp()
for name, model, arguments in (
    ("model outside", outside, {"batch_size": 33}),
    ("optimizer outside", inside, {"optimizer": tf_keras.optimizers.SGD(1e-4)}),
    ("l-bfgs", inside, {"method": "l-bfgs"}),
):
    try:
        idm.training.fit(model, (X, Y), strategy=strategy, progress=False, **arguments)
    except ValueError as error:
        found[name] = str(error)
print(json.dumps(found))
