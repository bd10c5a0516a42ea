"""Run by test_strategy.py: one of two workers, that may be killed in the midst of a fit."""

import contextlib
import io
import json
import os
import signal
import sys
from typing import Any

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation

import interdomain as idm  # noqa: E402
from tests.training.strategy_models import X, Y, difference, svgp  # noqa: E402

FOLDER, DIE_AT = sys.argv[1], int(sys.argv[2])
INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
SETTINGS = {"batch_size": 33, "steps": 40, "natural_gradient": 0.3}


def maybe_die(step: int, model: Any) -> None:
    if step == DIE_AT and INDEX == 1:
        os.kill(os.getpid(), signal.SIGKILL)


with strategy.scope():
    model = svgp()
shown = io.StringIO()
try:
    with contextlib.redirect_stderr(shown):
        result = idm.training.fit(
            model,
            (X, Y),
            strategy=strategy,
            checkpoint_dir=FOLDER,
            checkpoint_every=10,
            resume=True,
            callbacks=[maybe_die],
            callback_every=5,
            **SETTINGS,
        )
except idm.training.WorkerLostError as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's own end would wait for the other worker
single = svgp()
idm.training.fit(single, (X, Y), progress=False, **SETTINGS)
print(
    json.dumps(
        {
            "replicas": strategy.num_replicas_in_sync,
            "first_step": result.first_step,
            "difference": difference(model, single),
            "bar": "fit:" in shown.getvalue(),
        }
    )
)
