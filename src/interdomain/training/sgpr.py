"""Training of a :class:`interdomain.models.StructuredSGPR` with one pass over its data."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow

from .._arguments import integer
from .._tracing import operation_by_operation
from ..choosing import choose_features
from ..regression.rows_model import RowsModel
from ..regression.structured_sgpr import StructuredSGPR
from .checkpoints import Checkpoints, check_free
from .lbfgs import fit_by_lbfgs
from .results import RowsFit
from .trained import warn_of_fit


def fit_sgpr(
    model: StructuredSGPR,
    *,
    num_inducing: int | None = None,
    subset_size: int = 5_000,
    subset_steps: int = 50,
    steps: int = 1000,
    seed: int = 0,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
) -> RowsFit:
    """Train a :class:`~interdomain.models.StructuredSGPR` with one pass over its data.

    1. All trainable parameters are trained by L-BFGS on a random subset.
    2. The parameters that the features depend on, ``model.feature_parameters``, keep these values:
       they are marked not trainable, and stay so. For spherical harmonics these are the input
       scales, ``weight_variances`` and ``bias_variance``.
    3. One pass over all rows computes the statistics.
    4. The other parameters, such as the kernel's variance and lengthscale and the noise variance,
       are trained by L-BFGS on the statistics. This is exact for all rows, at O(M^3) a step.

    **With** ``num_inducing`` the data choose the features too, among harmonics or waves of a box.
    Give the model only a few features to start with, such as all harmonics of degrees 0 to 2.
    Step 1 then continues: matching pursuit chooses a few features, and all parameters are trained
    with them. After step 2, the final features are chosen with these input scales, on up to 20,000
    rows. If the log density of held-out rows has shown that there are too few rows to choose by,
    the features of largest prior variance are taken. :attr:`RowsFit.choice` says what was done, and
    ``model.inducing_variable`` holds the chosen features.

    >>> import numpy as np, interdomain as idm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=[200, 3])
    >>> Y = np.sin(3 * X[:, :1] + X[:, 1:2]) + 0.1 * rng.normal(size=[200, 1])
    >>> kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(3))
    >>> few = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree=2)
    >>> prior = idm.kernels.FiniteRank(kernel, few)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, few, noise_variance=0.1)
    >>> fitted = idm.training.fit_sgpr(
    ...     model, num_inducing=25, subset_steps=10, steps=50, progress=False
    ... )
    >>> model.inducing_variable.num_inducing, max(model.inducing_variable.degrees) > 2
    (25, True)

    Steps 1 and 2 are left out if the features depend on no trainable parameter: on none at all (as
    :class:`~interdomain.inducing_variables.VariationalFourierFeatures`), or only on parameters
    that are not trainable.

    With features that depend on every parameter of the kernel, such as inducing points, only the
    noise variance and the mean function are left for step 4. To train everything on all rows, use
    :func:`fit` where they are in memory, or ``gpflow.models.SVGP`` in minibatches.

    :param model: its parameters are trained in place.
    :param num_inducing: the largest number M of features to choose; None keeps the features of the
        model.
    :param subset_size: the number of rows to draw, without replacement; all rows, if there are
        fewer. No rows are drawn if steps 1 and 2 are left out.
    :param subset_steps: the largest number of L-BFGS iterations on the subset.
    :param steps: the largest number of L-BFGS iterations on the statistics.
    :param seed: the seed for drawing the subset.
    :param checkpoint_dir: a folder for the checkpoints of both fits. Chosen features are not kept:
        a run that is resumed, on a model that is built anew, chooses the same again, and a folder
        of others is refused.
    :param resume: continue from what is in ``checkpoint_dir``.
    :param progress: show progress bars.
    :raises ValueError: for wrong arguments, a model of another class, or one without its rows while
        a feature parameter is trainable.
    """
    started = time.perf_counter()
    sizes: dict[str, Any] = {"subset_size": subset_size, "subset_steps": subset_steps}
    check_recipe(model, StructuredSGPR, num_inducing, sizes, checkpoint_dir, resume)
    integer("steps", steps, at_least=1)
    folder = None if checkpoint_dir is None else Path(checkpoint_dir)
    arguments: dict[str, Any] = {"resume": resume, "progress": progress}
    trainable = {n: p for n, p in model.feature_parameters.items() if p.trainable}
    subset, choice, frozen = None, None, tuple(trainable)
    if num_inducing is not None:

        def refit(some: StructuredSGPR, number: int) -> None:
            with operation_by_operation():  # its features will soon be others
                fit_by_lbfgs(some, steps=number)

        choice, frozen, _ = choose_features(
            model,
            int(num_inducing),
            model.model_of,
            lambda some, number: fit_by_lbfgs(some, steps=number, progress=progress),
            refit=refit,
            **sizes,
            seed=seed,
            progress=progress,
        )
    elif trainable:
        subset = fit_by_lbfgs(
            model.subset_model(subset_size, seed=seed),
            steps=subset_steps,
            checkpoint_dir=folder and folder / "subset",
            **arguments,
        )
        for parameter in trainable.values():
            gpflow.set_trainable(parameter, False)
    subset_done = time.perf_counter()
    _ = model.statistics
    pass_done = time.perf_counter()
    result = fit_by_lbfgs(model, steps=steps, checkpoint_dir=folder and folder / "fit", **arguments)
    warn_of_fit(model, None)
    of_result = {**vars(result), "seconds": time.perf_counter() - started}
    return RowsFit(
        **of_result,
        frozen=frozen,
        choice=choice,
        subset=subset,
        subset_seconds=subset_done - started,
        pass_seconds=pass_done - subset_done,
    )


def check_recipe(
    model: Any,
    kind: type[RowsModel],
    num_inducing: int | None,
    sizes: Mapping[str, int],
    checkpoint_dir: str | os.PathLike[str] | None,
    resume: bool,
) -> None:
    """Check the arguments that :func:`fit_sgpr` and ``fit_collapsed`` have in common.

    :param kind: the class that the model must be of.
    :param sizes: those that must be 1 or more, by name.
    :raises ValueError: if one is wrong, or the folder is of a run that is not to be resumed.
    """
    if not isinstance(model, kind):
        other = getattr(type(model), "recipe", "fit")
        raise ValueError(
            f"model: found a {type(model).__name__}; pass an interdomain.models.{kind.__name__}, "
            f"or call interdomain.training.{other}."
        )
    if num_inducing is not None:
        integer("num_inducing", num_inducing, at_least=1)
    for name, size in sizes.items():
        integer(name, size, at_least=1)
    if checkpoint_dir is None:
        Checkpoints(None, resume, fit="")  # refuses to resume from nowhere
    elif not resume:  # before time is spent on a subset
        folder = Path(checkpoint_dir)
        check_free(folder, folder / "subset", folder / "fit")
