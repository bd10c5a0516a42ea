"""Statistics of one process; tests/training/test_resume.py adds those of two workers."""

import numpy as np
import tensorflow as tf

from tests.training.strategy_models import X, Y, regression


def test_one_process_has_the_sums_itself() -> None:
    own = regression((X, Y)).statistics
    for strategy in (tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy()):
        found = own.all_reduce(strategy)
        assert found.num_rows == own.num_rows
        for name, array in own.sums.items():
            np.testing.assert_array_equal(found.sums[name], array)
        assert regression(found).elbo() == regression(own).elbo()
