"""Run by test_all_reduce.py: one of two workers, each with a part of the rows."""

import json
import os
from typing import Any

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.normal(size=(90, 1))


def make_model(data: Any, scale: float = 0.7) -> Any:
    import gpflow

    import interdomain as idm

    kernel = idm.kernels.SphericalMatern32(weight_variances=np.full(2, scale))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 3)
    for parameter in (kernel.weight_variances, kernel.bias_variance):
        gpflow.set_trainable(parameter, False)
    return idm.models.StructuredSGPR(
        data, kernel, harmonics, noise_variance=0.1, batch_size=16, progress=False
    )


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation
    from interdomain.distributed import all_reduce

    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    part = slice(0, 30) if index == 0 else slice(30, None)
    own = make_model((X[part], Y[part])).statistics
    total = all_reduce(own, strategy)
    others = ""
    try:
        all_reduce(make_model((X, Y), scale=0.7 + index).statistics, strategy)
    except ValueError as error:
        others = f"ValueError: {error}"
    found = {
        "rows": total.num_rows,
        "skipped": total.num_skipped,
        "own rows": own.num_rows,
        "elbo": float(make_model(total).elbo()),
        "others": others,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
