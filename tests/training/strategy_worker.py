"""Run by test_strategy.py: one of two workers with two devices each, that may be killed."""

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation

from gpflow.keras import tf_keras  # noqa: E402

import interdomain as idm  # noqa: E402
from tests.training.strategy_models import (  # noqa: E402
    X,
    Y,
    difference,
    hvgp,
    moves,
    svgp,
    unconstrained,
)

FOLDER, DIE_AT = Path(sys.argv[1]), int(sys.argv[2])
INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
SETTINGS: dict[str, Any] = {"batch_size": 33, "steps": 40, "natural_gradient": 0.3}
DEVICES = ["CPU:0", "CPU:1"]


def maybe_die(step: int, model: Any) -> None:
    if step == DIE_AT and INDEX == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def killed_or_resumed() -> dict[str, Any]:
    with strategy.scope():
        model = svgp()
    start = unconstrained(svgp())
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        result = idm.training.fit(
            model,
            (X, Y),
            strategy=strategy,
            checkpoint_dir=FOLDER / "killed",
            checkpoint_every=10,
            resume=True,
            callbacks=[maybe_die],
            callback_every=5,
            **SETTINGS,
        )
    single = svgp()
    idm.training.fit(single, (X, Y), progress=False, **SETTINGS)
    return {
        "first_step": result.first_step,
        "checkpoint": result.checkpoint,
        "difference": difference(moves(model, start), moves(single, start)),
        "bar": "fit:" in shown.getvalue(),
    }


def blocks_on_devices() -> float:
    """Batches on workers, blocks on the devices of each."""
    with strategy.scope():
        model, optimizer = hvgp(DEVICES), tf_keras.optimizers.SGD(1e-4)
    assert [name[-5:] for name in model.devices or ()] == DEVICES
    single = hvgp()
    start = unconstrained(single)
    settings: dict[str, Any] = {"batch_size": 33, "steps": 2, "natural_gradient": 0.3}
    fit = idm.training.fit
    fit(model, (X, Y), strategy=strategy, optimizer=optimizer, progress=False, **settings)
    fit(single, (X, Y), optimizer=tf_keras.optimizers.SGD(1e-4), progress=False, **settings)
    return difference(moves(model, start), moves(single, start))


def dataset_in_two_legs() -> float:
    """tf.data splits the batches; the second leg skips those of the first."""

    def data() -> tf.data.Dataset:  # made anew, as after a restart
        return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(101, seed=3).batch(40)

    with strategy.scope():
        legs = [svgp(), svgp()]
    start = unconstrained(svgp())
    for steps, model in zip((2, 5), legs, strict=True):
        idm.training.fit(
            model,
            data(),
            steps=steps,
            strategy=strategy,
            checkpoint_dir=FOLDER / "dataset",
            resume=True,
            progress=False,
        )
    single = svgp()
    idm.training.fit(single, data(), steps=5, progress=False)
    return difference(moves(legs[1], start), moves(single, start))


def ended_together() -> dict[str, Any]:
    """What one worker wishes, and the clock of the first that looks, end the fit of both."""
    ends = {}
    for name, arguments in {
        "callback": {"callbacks": [only_the_other_stops], "callback_every": 2},
        "max_seconds": {"max_seconds": 1e-3, "callback_every": 3},
    }.items():
        with strategy.scope():
            model = svgp()
        result = idm.training.fit(
            model, (X, Y), strategy=strategy, progress=False, batch_size=33, steps=9, **arguments
        )
        ends[name] = [result.steps, result.reason, result.message]
    return ends


def only_the_other_stops(step: int, model: Any) -> None:
    if step == 4 and not strategy.extended.should_checkpoint:
        raise idm.training.StopFit("the other worker has seen enough")


def refused() -> str:
    """A checkpoint that the chief refuses: the others do not wait for it in vain."""
    with strategy.scope():
        model = svgp()
    try:
        idm.training.fit(
            model, (X, Y), strategy=strategy, checkpoint_dir=FOLDER / "killed", **SETTINGS
        )
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


try:
    found = killed_or_resumed()
except idm.training.WorkerLostError as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's own end would wait for the other worker
found |= {
    "replicas": strategy.num_replicas_in_sync,
    "blocks on devices": blocks_on_devices(),
    "dataset": dataset_in_two_legs(),
    "refused": refused(),
    "ends": ended_together(),
}
print(json.dumps(found))
