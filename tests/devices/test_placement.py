"""Blocks on devices: where operations, variables and results are. On four logical CPUs, which a
process has to ask for before it uses TensorFlow; so all of it is computed by one of its own."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from interdomain.devices import resolve_devices
from tests.devices.placement_process import LATENT, NUM_DATA, SIZE
from tests.workers import UNCHECKED

pytestmark = pytest.mark.slow  # one device: tests/models/svgp/test_additive_svgp.py

DEVICES = ["0", "2"]
RUN = "from tests.devices import placement_process; placement_process.main()"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", f"{UNCHECKED}\n{RUN}"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_operations_are_pinned(results: dict[str, Any]) -> None:
    """Forward and backward: as many of each kind on each device, and none elsewhere."""
    operations = results["four"]["operations"]
    assert {"Cholesky", "MatrixTriangularSolve", "MatMul", "BatchMatMulV2"} <= set(operations)
    for name, counts in operations.items():
        assert sorted(counts) == DEVICES, name
        assert len(set(counts.values())) == 1, name
    assert operations["Cholesky"] == dict.fromkeys(DEVICES, 2)


def test_variables_are_dealt_in_turn(results: dict[str, Any]) -> None:
    assert results["four"]["variables"] == dict.fromkeys(("q_mu", "q_sqrt", "Z"), 2 * DEVICES)


def test_only_small_results_travel(results: dict[str, Any]) -> None:
    """The blocks' means and variances, what they explain of the prior variances, numbers, and the
    gradients of parameters; no matrix of m x N, and none of m x m but the packed gradients of
    q_sqrt."""
    gradient_shapes = [[SIZE, LATENT], [LATENT, SIZE * (SIZE + 1) // 2], [SIZE, 4]]
    travelling = results["four"]["travelling"]
    shapes = [shape for _, shape in travelling]
    assert [NUM_DATA, LATENT] in shapes
    # One for each block, which two operations read.
    assert shapes.count([NUM_DATA]) == 2 * 4
    for kind, shape in travelling:
        assert None not in shape, kind
        small = shape in ([NUM_DATA, LATENT], [NUM_DATA]) or math.prod(shape) == 1
        assert small or shape in gradient_shapes, (kind, shape)


def test_results_are_those_of_one_device(results: dict[str, Any]) -> None:
    for case in ("four", "two sizes"):
        assert len(results[case]["differences"]) == 6
        assert max(results[case]["differences"].values()) < 1e-10, results[case]["differences"]


def test_placed_models_have_checkpoints(results: dict[str, Any]) -> None:
    assert results["four"]["restored"]


def test_each_block_is_on_its_device(results: dict[str, Any]) -> None:
    """Five points on CPU:1 and nine on CPU:3: the factors tell them apart."""
    two = results["two sizes"]
    assert sorted(two["cholesky"]) == two["points"] == [["1", 5], ["3", 9]]


def test_names() -> None:
    for name in ("CPU:0", "/CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"):
        assert [found[-13:] for found in resolve_devices([name]) or ()] == ["/device:CPU:0"]
    assert resolve_devices(tf.config.list_logical_devices("CPU")) == resolve_devices(["CPU:0"])
    message_start = r"devices must be names of devices that TensorFlow has, \['CPU:0'.*, found "
    for wrong, message in (
        ("CPU:0", "devices must be a list of names"),
        (0, "devices must be a list of names"),
        (["CPU:0", "CPU:99", "GPU:9"], message_start + r"\['CPU:99', 'GPU:9'\]; pass"),
        ([], message_start + "none; pass"),
    ):
        with pytest.raises(ValueError, match=message):
            resolve_devices(wrong)
