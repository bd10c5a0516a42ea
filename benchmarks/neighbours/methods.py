"""Our models, by name: features, neighbours and both."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.elevations import globe
from benchmarks._lib.race import waves
from benchmarks.neighbours.data_sets import Task
from benchmarks.neighbours.predicted import Predicted

FEATURES, WAVES = 500, 1_080
GIVEN = {"12": "Matern12", "32": "Matern32", "52": "Matern52"}
"""The fixed kernels of GPflow, by name."""


def first_lengthscale(num_columns: int) -> float:
    """The initial lengthscale of fixed kernels."""
    return 0.1 if num_columns == 2 else num_columns**0.5


def given(name: str, task: Task, num_columns: int | None = None) -> Any:
    """A local kernel with a lengthscale for each of the first columns."""
    size = num_columns or task.train[0].shape[1]
    columns = None if num_columns is None else range(num_columns)
    first = 0.1 if task.on_globe else np.full(size, first_lengthscale(size))
    return getattr(gpflow.kernels, GIVEN[name])(lengthscales=first, active_dims=columns)


def local_part(task: Task) -> dict[str, Any]:
    """The arguments of every VecchiaSGPR."""
    number = 20 if task.train[0].shape[1] == 2 else 30
    inputs = "degrees" if task.on_globe else "euclidean"
    return {"num_neighbours": number, "local_inputs": inputs}


def neighbours(
    task: Task, *, kernel: str | None = None, as_many: bool = False, at: bool = False
) -> Predicted:
    """The predictions of VecchiaSGPR without features.

    :param kernel: a name in `GIVEN`, or None for the kernel that `fit` chooses.
    :param as_many: predict from as many rows as training conditions on.
    :param at: choose the kernel for predictions at the test rows.
    """
    how = local_part(task)
    if as_many:
        how["num_prediction_neighbours"] = how["num_neighbours"]
    how |= {} if kernel is None else {"local_kernel": given(kernel, task), "noise_variance": 0.1}
    model = idm.models.VecchiaSGPR(task.train, **how)
    return fitted(task, model, {"predict_at": task.test[0]} if at else {})


def features(task: Task) -> Predicted:
    model = idm.models.StructuredSGPR(task.train, *block(task), noise_variance=0.1)
    return fitted(task, model)


def both(task: Task, *, kernel: str | None = None) -> Predicted:
    how = local_part(task)
    how |= {} if kernel is None else {"local_kernel": given(kernel, task), "noise_variance": 0.1}
    return fitted(task, idm.models.VecchiaSGPR(task.train, *block(task), **how))


def student_t(task: Task) -> Predicted:
    """The predictions of neighbours without features, under Student-t noise."""
    noise = gpflow.likelihoods.StudentT()
    model = idm.models.VecchiaSGPR(task.train, likelihood=noise, **local_part(task))
    result = idm.fit(model)
    mean, variance = idm.predict_in_batches(model, task.test[0])
    law = float(np.asarray(noise.scale)), float(np.asarray(noise.df))
    return Predicted(mean, variance, law, {"parts": f"{law[1]:.1f} degrees", **chosen(result)})


def grouped(task: Task) -> Predicted:
    """The predictions of an intercept for each group, the last column, and neighbours by places."""
    intercepts = idm.tables.GroupIntercepts.from_data(task.train[0][:, 2], active_dims=[2])
    features = idm.tables.GroupFeatures(intercepts)
    model = idm.models.VecchiaSGPR(
        task.train,
        idm.kernels.FiniteRank(intercepts, features),
        features,
        local_kernel=given("32", task, 2),
        num_neighbours=20,
        noise_variance=0.1,
    )
    return fitted(task, model)


def places_alone(task: Task) -> Predicted:
    """The predictions of neighbours by the places, without groups; the kernel is fixed."""
    kernel = given("32", task, 2)
    how: dict[str, Any] = {"local_kernel": kernel, "noise_variance": 0.1}
    return fitted(task, idm.models.VecchiaSGPR(task.train, num_neighbours=20, **how))


def fitted(task: Task, model: Any, options: dict[str, Any] | None = None) -> Predicted:
    """The predictions of a model after `fit`: of y, and for stations of f."""
    result = idm.fit(model, options=options or {})
    return predictions(task, model, {"parts": kept(result), **chosen(result)})


def predictions(task: Task, model: Any, more: dict[str, Any] | None = None) -> Predicted:
    method: Any = "predict_f" if task.data == "stations" else "predict_y"
    mean, variance = idm.predict_in_batches(model, task.test[0], method=method)
    return Predicted(mean, variance, None, more or {})


def kept(result: Any) -> str:
    """The parts that the evidence prefers."""
    return str(result.parts).partition("kept: ")[2].split("\n")[0]


def chosen(result: Any) -> dict[str, str]:
    """The local kernel that `fit` chose, if it chose one."""
    compared = getattr(result, "local_kernels", None)
    return {} if compared is None else {"local_kernel": str(compared.kept)}


def block(task: Task) -> tuple[Any, Any]:
    """A kernel of finite rank, and its features."""
    X, size = task.train[0], task.train[0].shape[1]
    few = min(WAVES, len(X) // 2)
    if task.on_globe:
        kernel, some = globe(int(few**0.5) - 1)
    elif size == 2:
        kernel, some = waves(np.r_[X, task.test[0]], few, 0.2, 2.0)
    else:
        kernel, some = harmonics(size)
    return idm.kernels.FiniteRank(kernel, some), some


def harmonics(num_columns: int) -> Any:
    """A kernel on the sphere, and its harmonics up to the highest degree with at most 500."""
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(num_columns))
    few, degree = None, 1
    while True:
        more = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, num_columns, degree)
        if few is not None and more.num_inducing > FEATURES:
            return kernel, few
        few, degree = more, degree + 1
