"""Run by test_shards.py: one of two workers, one of which may be killed in the midst of a pass."""

import json
import os
import signal
import sys
import zlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import ShapeCheckingState, set_enable_check_shapes

# Before GPflow, which reads its shapes for seconds when it is imported; other tests check them.
set_enable_check_shapes(ShapeCheckingState.DISABLED)

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation

import gpflow  # noqa: E402
import numpy as np  # noqa: E402

import interdomain as idm  # noqa: E402
from interdomain.streaming import Shards  # noqa: E402
from interdomain.streaming.contributions import Contributions  # noqa: E402

FOLDER, MODE = sys.argv[1:]
INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
ALONE = INDEX == 0  # the first computes what one process finds, too
RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 2))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.normal(size=(500, 1))
ENDS = dict(zip("abcde", ((0, 90), (90, 200), (200, 310), (310, 390), (390, 500)), strict=True))

computed: list[int] = []
original = Contributions.evaluate


def counted(self: Any, X: Any, Y: Any) -> Any:
    computed.append(len(X))
    return original(self, X, Y)


Contributions.evaluate = counted  # type: ignore[method-assign]


def part(name: str) -> Callable[[], Any]:
    def read() -> Any:
        if MODE == "killed" and name == "d":
            os.kill(os.getpid(), signal.SIGKILL)
        return tuple(array[slice(*ENDS[name])] for array in (X, Y))

    return read


def parts_of_models(*, frozen: bool = True) -> tuple[Any, Any]:
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.full(2, 0.7))
    for parameter in (kernel.weight_variances, kernel.bias_variance):
        gpflow.set_trainable(parameter, not frozen)
    return kernel, idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 3)


def make_model(data: Any, *, frozen: bool = True, **arguments: Any) -> Any:
    kernel, harmonics = parts_of_models(frozen=frozen)
    defaults = {"noise_variance": 0.1, "batch_size": 16, "progress": False, "strategy": strategy}
    return idm.models.StructuredSGPR(data, kernel, harmonics, **(defaults | arguments))


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def checksum(*arrays: Any) -> int:
    return zlib.crc32(b"".join(np.asarray(array).tobytes() for array in arrays))


def difference(one: Any, other: Any) -> float:
    a, b = one.gram.value, other.gram.value
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


shards = Shards({name: part(name) for name in ENDS})
model = make_model(shards, checkpoint_path=FOLDER)
try:
    statistics = model.statistics
except idm.training.WorkerLostError as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's own end would wait for the other worker
found: dict[str, Any] = {
    "rows": statistics.num_rows,
    "computed": sum(computed),
    "rows of d": ENDS["d"][1] - ENDS["d"][0],
    "checksum": checksum(statistics.gram.high, statistics.gram.low, statistics.diagonal.value),
}
computed.clear()
split = make_model((X, Y))
summed = split.statistics  # of both workers
if ALONE:
    computed.clear()
    alone = make_model(shards, strategy=None, checkpoint_path=FOLDER)
    found["rows of one process"] = alone.num_data
    found["computed by one process"] = sum(computed)
    single = make_model((X, Y), strategy=None)
    found["difference"] = difference(statistics, single.statistics)
    found["split difference"] = difference(summed, single.statistics)

# Features chosen by the residuals of the rows of both.
chosen = [make_model(shards), make_model((X, Y), strategy=None)][: 1 + ALONE]
for one in chosen:
    idm.training.matching_pursuit(one, 30, steps=0, max_candidates=60, progress=False)
chains = [one.inducing_variable.chains.tolist() for one in chosen]
found["chosen"], found["chosen by one process"] = sorted(chains[0]), sorted(chains[-1])

# The recipe: a subset of these rows, the pass, such features, the fit.
trained = make_model(shards, frozen=False)
found["subset"] = checksum(*trained._provider.subset(50, 3))
arguments = {"subset_size": 100, "subset_steps": 3, "steps": 3, "progress": False}
idm.training.fit_sgpr(trained, num_inducing=24, max_turns=0, **arguments)
found["fitted"] = checksum(*[p.numpy() for p in trained.parameters])
found["features"], found["bound"] = trained.inducing_variable.chains.tolist(), float(trained.elbo())
if ALONE:
    whole = make_model((X, Y), strategy=None, likelihood=trained.likelihood, noise_variance=None)
    whole.kernel, whole.inducing_variable = trained.kernel, trained.inducing_variable
    found["bound of one process"] = float(whole.elbo())

split.extend((X, Y))
split.extend((X[:1], Y[:1]))  # a row less than there are workers
found["extended"] = split.num_data

spoilt = X[:50].copy()
spoilt[7] = np.nan
bad = make_model(Shards({"a": (X, Y), "b": (spoilt, Y[:50])}))
found["invalid"] = error_of(bad.elbo)
dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
found["dataset"] = error_of(lambda: make_model(dataset))
found["trainable"] = error_of(make_model(shards, frozen=False).training_loss)
compiled = tf.function(model.training_loss)
compiled()
model.kernel.weight_variances.assign([0.5, 0.6])
found["changed"] = error_of(compiled)
print(json.dumps(found))
