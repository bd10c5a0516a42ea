"""The attack finds what is planted, and nothing in a few draws of each family."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.attack import benchmark as attack
from benchmarks.attack import draws as attack_draws
from benchmarks.attack.draws import Draw, Pair


@pytest.mark.full
@pytest.mark.parametrize("family", attack.FAMILIES)
def test_few_draws_of_every_family(family: str) -> None:
    result = attack.attack(family, seed=1, first=0, last=2)
    assert result["draws"] == 2
    assert result["faults"] == []


def test_families_are_those_that_can_be_drawn() -> None:
    assert tuple(attack_draws.FAMILIES) == attack.FAMILIES


class Negative(gpflow.kernels.SquaredExponential):
    """No kernel: distances count with the wrong sign."""

    def K_r2(self, r2: tf.Tensor) -> tf.Tensor:
        return self.variance * tf.exp(0.5 * r2)


class Steep(gpflow.kernels.SquaredExponential):
    """With a gradient that is not its own."""

    def K_r2(self, r2: tf.Tensor) -> tf.Tensor:
        return super().K_r2(r2 + tf.stop_gradient(r2))


class Unbounded(gpflow.kernels.SquaredExponential):
    def K_r2(self, r2: tf.Tensor) -> tf.Tensor:
        return super().K_r2(r2) / tf.zeros_like(r2)


@pytest.mark.parametrize(
    ("kind", "check"), [(Negative, "positive"), (Steep, "gradients"), (Unbounded, "finite")]
)
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, kind: type, check: str) -> None:
    def planted(generator: np.random.Generator) -> Draw:
        X = generator.normal(size=(5, 1))

        def build() -> Pair:
            return kind(), gpflow.inducing_variables.InducingPoints(X[:2])

        return Draw("interval", "planted", build, X, np.sin(X), 0.1)

    monkeypatch.setitem(attack_draws.FAMILIES, "interval", planted)
    result = attack.attack("interval", seed=0, first=0, last=1)
    assert check in {fault["check"] for fault in result["faults"]}
    record = {
        "configuration": {"family": "interval", "seed": 0, "first": 0, "last": 1},
        "result": result,
        "seconds": 1.0,
    }
    table = attack.table_of([record])
    assert f"{check} float64: 1" in table and "planted" in table
