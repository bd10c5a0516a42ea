"""Models at known parameters, compared with the exact GP: stations, and prices of houses."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks.neighbours.data_sets import Task
from benchmarks.neighbours.methods import chosen, kept, predictions
from benchmarks.neighbours.predicted import Predicted

NEIGHBOURS = 30


def exact(task: Task) -> Predicted:
    """The exact GP at its parameters: GPflow's GPR on the mean of each place, or the stored one."""
    if task.data.startswith("house"):
        return Predicted(task.known["mean"], task.known["var"])
    X, Y = task.train
    places, groups, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(groups.ravel(), Y[:, 0]) / counts
    if np.ptp(counts):
        raise RuntimeError("the noise of the means differs: places have different numbers of rows")
    noise = task.known["noise_variance"] / counts[0]
    model = gpflow.models.GPR((places, means[:, None]), kernel_of(task), noise_variance=noise)
    return predictions(task, model)


def at_law(task: Task, *, merge: str = "auto") -> Predicted:
    """Neighbours at the parameters of the exact GP."""
    model = model_of(task, kernel_of(task), task.known["noise_variance"], merge=merge)
    if with_mean(task):
        assign_mean(model, task.known["slopes"])
    return beside_exact(task, model)


def trained(task: Task, *, kernel: str | None = None, merge: str = "auto") -> Predicted:
    """The predictions of neighbours after `fit`, which also solves for a linear mean.

    :param kernel: the name of a fixed kernel, of the places only.
    """
    local = None
    if kernel is not None:
        first = 0.1 * float(task.train[0][:, :2].std())
        local = getattr(gpflow.kernels, kernel)(lengthscales=first, active_dims=[0, 1])
    model = model_of(task, local, None, merge=merge)
    result = idm.fit(model)
    return beside_exact(task, model, {"parts": kept(result), **chosen(result)})


def with_mean(task: Task) -> bool:
    """Whether the law has a mean that is linear in all columns, the places included."""
    return task.data.endswith("_covs")


def kernel_of(task: Task) -> Any:
    """The true kernel, of the two columns of places."""
    law = {key: float(task.known[key]) for key in ("variance", "lengthscales")}
    return gpflow.kernels.Matern32(**law, active_dims=[0, 1])


def model_of(task: Task, local: Any, noise_variance: float | None, *, merge: str) -> Any:
    mean = None
    if with_mean(task):
        mean = gpflow.mean_functions.Linear(np.zeros([task.train[0].shape[1], 1]))
    return idm.models.VecchiaSGPR(
        task.train,
        local_kernel=local,
        num_neighbours=NEIGHBOURS,
        noise_variance=noise_variance,
        mean_function=mean,
        merge=merge,
    )


def assign_mean(model: Any, slopes: Array) -> None:
    """Assign a linear mean: the slopes of the columns, and last the constant, [D + 1]."""
    model.mean_function.A.assign(slopes[:-1, None])
    model.mean_function.b.assign(slopes[-1:])


def beside_exact(task: Task, model: Any, more: dict[str, Any] | None = None) -> Predicted:
    """The predictions of a model, and the root mean square distance of their means from the exact
    means, in exact standard deviations."""
    found, extra = predictions(task, model), dict(more or {})
    if "mean" in task.known:
        distances = (np.ravel(found.mean) - task.known["mean"]) / np.sqrt(task.known["var"])
        extra["off_exact"] = float(np.sqrt(np.mean(np.square(distances))))
        extra["most_off_exact"] = float(np.max(np.abs(distances)))
    return Predicted(found.mean, found.variance, None, extra)
