"""Statistics that two workers add are those of one process."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from interdomain.distributed import all_reduce
from tests.distributed.worker import X, Y, make_model
from tests.workers import finish, start_workers


def test_one_process_has_the_sums_itself() -> None:
    own = make_model((X, Y)).statistics
    for strategy in (tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy()):
        found = all_reduce(own, strategy)
        assert found.num_rows == own.num_rows
        for name, array in own.sums.items():
            np.testing.assert_array_equal(found.sums[name], array)
        assert make_model(found).elbo() == make_model(own).elbo()


@pytest.mark.slow
def test_two_workers_add_what_they_have_found() -> None:
    found = [finish(worker) for worker in start_workers(Path(__file__).with_name("worker.py"))]
    whole = make_model((X, Y))
    for one in found:
        assert one["rows"] == len(X) and one["skipped"] == 0
        assert one["elbo"] == pytest.approx(float(whole.elbo()), rel=1e-12)
        assert one["others"].startswith("ValueError: statistics: workers have statistics of diff")
    assert found[0]["elbo"] == found[1]["elbo"] and found[0]["own rows"] != found[1]["own rows"]
