"""The expressions of the table of AGENTS.md run as they stand, but for fits, which take time."""

import re
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

import interdomain as idm

AGENTS = Path(__file__).parents[2] / "AGENTS.md"
SLOW = ("idm.fit", "idm.tables", "idm.recommend", "idm.estimators")


def names_of_a_reader() -> dict[str, Any]:
    """Sixty rows that are latitudes and longitudes, and images, at once."""
    X, D = np.random.default_rng(0).uniform(-1, 1, (60, 16)), 2
    kernel = idm.kernels.SphericalMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, D, 2)
    public = [vars(part) for part in (idm.kernels, idm.inducing_variables, idm.models)]
    base = gpflow.kernels.SquaredExponential()
    names = {name: part for parts in public for name, part in parts.items()}
    mine = {"idm": idm, "gpflow": gpflow, "np": np, "D": D, "kernel": kernel, "base": base}
    likelihood = gpflow.likelihoods.Poisson()
    images = {"image_shape": (4, 4), "patch_shape": (2, 2)}
    data = {"X": X[:, :D], "Y": np.ones([60, 1]), "features": features, "likelihood": likelihood}
    return names | mine | images | data | {"images": X}


def test_the_table_of_jobs() -> None:
    rows = re.findall(r"^\| (?!job|---)(.*?) \| (.*) \|$", AGENTS.read_text(), flags=re.MULTILINE)
    assert len(rows) > 10
    count = 0
    for job, written in rows:
        names = names_of_a_reader()
        if job == "images":
            names["X"] = names["images"]
        for code in re.findall(r"`([^`]*\([^`]*)`", written):
            if not any(word in code for word in SLOW):
                exec(code, names)
                count += 1
    assert count > 12
