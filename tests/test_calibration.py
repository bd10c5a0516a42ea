"""Ranks of the truth are uniform under every model's predictive (`benchmarks/calibration`)."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from benchmarks.calibration.benchmark import MODELS, REPORTS, ranks, verdict

APPROXIMATE = ("poisson", "labels", "student_t")
"""Whose q is not the posterior; their distances are figures of the benchmark."""


@pytest.mark.slow
@pytest.mark.parametrize("models", [[m for m in MODELS if m not in APPROXIMATE + REPORTS], REPORTS])
def test_ranks_are_uniform(models: list[str]) -> None:
    found = {model: verdict(ranks(model, 20 if model in REPORTS else 200, 0)) for model in models}
    assert min(one["p"] for one in found.values()) > 1e-3, found


def test_a_wrong_predictive_is_noticed() -> None:
    """Standard deviations that are twice what they should be, or a mean that is half of one off."""
    truth = ranks("waves", 200, 0)
    for wrong in (ndtri(truth) / 2, ndtri(truth) + 0.5):
        assert verdict(np.asarray(ndtr(wrong)))["p"] < 1e-3
