"""The sizes of natural-gradient steps: the default, constants, and functions of the step."""

import numpy as np
import pytest
from gpflow.keras import tf_keras

from interdomain.training import fit
from interdomain.training.step_sizes import StepSizes

DECAY = tf_keras.optimizers.schedules.ExponentialDecay


def test_the_default_rises_for_a_full_q_and_falls_for_a_diagonal_one():
    sizes = StepSizes(True, (False, True))
    found = np.array([sizes.at(step) for step in range(2000)])
    full, diagonal = found.T
    assert full[0] == pytest.approx(5e-4 * 2) and full[-1] == pytest.approx(0.1)
    assert np.all(np.diff(full) >= 0) and np.all(full[20:] == full[-1])
    assert diagonal[0] <= 0.1 and np.all(np.diff(diagonal) < 0)
    assert diagonal[-1] < 0.2 * diagonal[0]


def test_many_q_take_shorter_steps_by_default():
    assert StepSizes(True, (False,) * 40).at(1000) == pytest.approx(np.full(40, 1 / 40))
    assert StepSizes(0.5, (False,) * 40).at(1000) == pytest.approx(np.full(40, 0.5))


def test_functions_and_schedules_are_given_the_steps_before():
    np.testing.assert_array_equal(StepSizes(lambda step: 1 / (1 + step), (True,)).at(3), [0.25])
    np.testing.assert_allclose(StepSizes(DECAY(0.5, 1, 0.1), (True, False)).at(2), 0.005)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.0, r"found a step size of 0\.0; pass a number in \(0, 1\], True"),
        (lambda step: 2.0, r"found a step size of 2\.0 at step 0; pass"),
        (lambda step: "large", "natural_gradient must be a number of real numbers, found 'large'"),
        ("large", "natural_gradient must be a number of real numbers, found 'large'"),
        (np.nan, "natural_gradient must be finite, found nan"),
    ],
)
def test_wrong_sizes(given, message):
    with pytest.raises(ValueError, match=message):
        StepSizes(given, (False,))


def test_a_wrong_size_is_named_with_its_step(data, make_bayesian_line):
    with pytest.raises(ValueError, match=r"step size of -0\.\d+ at step 2; pass a number"):
        sizes = {"natural_gradient": lambda step: 0.15 - 0.1 * step}
        fit(make_bayesian_line(), data, steps=5, **sizes, progress=False)


def test_what_a_checkpoint_says():
    def halving(step):
        return 0.5 ** (step + 1)

    assert StepSizes(0.3, (False,)).describe() == 0.3
    assert StepSizes(True, (False, False)).describe() == ["Rising(first=0.001, last=0.1, steps=20)"]
    described = StepSizes(halving, (False,)).describe()
    assert described["schedule"].endswith("halving") and described["first"] == 0.5
    described = StepSizes(DECAY(0.5, 10, 0.1), (True,)).describe()
    assert described["schedule"] == "ExponentialDecay" and described["decay_steps"] == 10


def test_other_sizes_are_another_fit(data, make_bayesian_line, tmp_path):
    options = {"steps": 2, "checkpoint_dir": tmp_path, "progress": False}
    fit(make_bayesian_line(), data, natural_gradient=DECAY(0.3, 10, 0.5), **options)
    for changed in (0.3, True, DECAY(0.3, 20, 0.5)):
        with pytest.raises(ValueError, match=r"another fit .*natural_gradient"):
            fit(make_bayesian_line(), data, natural_gradient=changed, resume=True, **options)


def test_false_is_none(data, make_noisy_line):
    assert fit(make_noisy_line(), data, natural_gradient=False, steps=2, progress=False).steps == 2
