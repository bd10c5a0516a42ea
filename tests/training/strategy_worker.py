"""Run by test_strategy.py: one of two workers with two devices each, that may be killed."""

# ruff: noqa: E402
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

import gpflow

import interdomain as idm
from tests.training.strategy_models import X, Y, moves, regression, svgp, unconstrained

FOLDER, DIE_AT = Path(sys.argv[1]), int(sys.argv[2])
INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
SETTINGS: dict[str, Any] = {"batch_size": 33, "steps": 40}
SETTINGS["optimizer"] = gpflow.optimizers.NaturalGradient(0.3)


def maybe_die(step: int, model: Any) -> None:
    if step == DIE_AT and INDEX == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def killed_or_resumed(model: Any) -> dict[str, Any]:
    start = unconstrained(model)
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        saved: dict[str, Any] = {"checkpoint_dir": FOLDER / "killed", "options": {"every": 5}}
        result = idm.fit(model, (X, Y), callbacks=[maybe_die], **saved, **SETTINGS)
    single = svgp()
    if INDEX == 0:  # the chief alone makes of another model what one device makes of it
        idm.fit(single, (X, Y), progress=False, **SETTINGS)
    return {
        "first_step": result.first_step,
        "checkpoint": result.checkpoint,
        "bar": "fit:" in shown.getvalue(),
        "moves": [array.tolist() for array in moves(model, start)],
        "single": [array.tolist() for array in moves(single, start)],
    }


def ended_together(model: Any) -> dict[str, Any]:
    """A wish of one worker, or the clock of the first that looks, ends the fit of both. The model
    was fitted before: nothing is compiled again."""
    ends = {}
    for name, arguments in {
        "callback": {"callbacks": [only_the_other_stops], "options": {"every": 2}},
        "max_seconds": {"options": {"max_seconds": 1e-3, "every": 3}},
    }.items():
        result = idm.fit(model, (X, Y), progress=False, **SETTINGS | {"steps": 9}, **arguments)
        ends[name] = [result.steps, result.reason, result.message]
    return ends


def added_up() -> dict[str, Any]:
    """Statistics of a part of the rows each; those of other features are refused."""
    part = slice(0, 30) if INDEX == 0 else slice(30, None)
    own = regression((X[part], Y[part])).statistics
    total = own.all_reduce(strategy)
    others = ""
    try:
        other = regression((X, Y), scale=0.7 + INDEX).statistics
        other.all_reduce(strategy)
    except ValueError as error:
        others = str(error)
    return {"rows": total.num_rows, "elbo": float(regression(total).elbo()), "others": others}


def only_the_other_stops(step: int, model: Any) -> None:
    if step == 4 and not strategy.extended.should_checkpoint:
        raise idm.training.StopFit("the other worker has seen enough")


def refused(model: Any) -> str:
    """A checkpoint that the chief refuses: the others do not wait for it in vain."""
    try:
        idm.fit(model, (X, Y), checkpoint_dir=FOLDER / "killed", **SETTINGS | {"batch_size": 34})
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


with strategy.scope():
    fitted = svgp()
try:
    found = killed_or_resumed(fitted)
except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
    print(json.dumps({"lost": str(error)}))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's own end would wait for the other worker
found |= added_up() | {
    "replicas": strategy.num_replicas_in_sync,
    "refused": refused(fitted),
    "ends": ended_together(fitted),
}
print(json.dumps(found))
