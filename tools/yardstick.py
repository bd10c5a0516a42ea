"""How quick this machine is now: the seconds of a fixed piece of work like that of the tests.

    python tools/yardstick.py

Two processes of one thread, as the tests have, make the graph of a stock GPflow model's loss and
gradients again and again, and multiply and factorise matrices. Nothing of this library is used, so
that the figure changes with the machine alone. Prints the longer of the two.
"""

import os
import subprocess
import sys
import time

REPETITIONS = 16
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def seconds() -> float:
    import gpflow
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(50, 3)), rng.normal(size=(500, 500))
    A = tf.constant(A @ A.T + 500 * np.eye(500))

    def work() -> None:
        model = gpflow.models.SVGP(
            gpflow.kernels.Matern52(lengthscales=[1.0, 2.0, 3.0]),
            gpflow.likelihoods.Bernoulli(),
            X[:10],
            whiten=False,
        )

        def step() -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                loss = -model.elbo((X, (X[:, :1] > 0).astype(float)))
            return tape.gradient(loss, model.trainable_variables)

        tf.function(step, autograph=False)()
        for _ in range(4):
            tf.linalg.cholesky(A @ A).numpy()

    work()
    begun = time.perf_counter()
    for _ in range(REPETITIONS):
        work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    if "alone" in sys.argv:
        print(seconds())
    else:
        command = [sys.executable, __file__, "alone"]
        environment = {**os.environ, **SINGLE}
        both = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            for _ in range(2)
        ]
        print(f"{max(float(process.communicate()[0].split()[-1]) for process in both):.1f}")
