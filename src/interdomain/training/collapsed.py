"""Training of a :class:`interdomain.models.DualSVGP`: passes, and steps without data."""

from __future__ import annotations

import os
import time
from typing import Any

import gpflow
import numpy as np
from gpflow.likelihoods import Bernoulli, MultiClass, Softmax

from .._arguments import Array, integer, number, warn
from ..choosing import choose_features
from ..sites.dual_svgp import DualSVGP, PassResult
from .passes import Passes, frozen
from .results import RowsFit
from .sgpr import check_recipe
from .site_rows import RowsWithSites

_LARGE = 4  # times the rows of the subset: fewer are not worth a beginning on the subset
_GROWTH = 2.0  # the factor by which chosen features grow in a round

# Where labels are told apart: the expected log-likelihood of a row, on average (labels have a
# probability of 90%, those near the border included), and the standard deviation of f in the prior,
# where one to three are enough for certainty, at so many rows.
_CERTAIN, _LARGE_DEVIATION, _ROWS = -0.1, 10.0, 100


def fit_collapsed(
    model: DualSVGP,
    *,
    num_inducing: int | None = None,
    max_passes: int = 20,
    tolerance: float | None = None,
    steps: int = 20,
    max_seconds: float | None = None,
    subset_size: int = 3_000,
    subset_steps: int = 25,
    seed: int = 0,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
) -> RowsFit:
    """Train a :class:`~interdomain.models.DualSVGP` in a few passes over its data.

    1. If there are many more rows than ``subset_size``, start on a random subset, on which steps 2
       to 5 are done first. If features depend on trainable parameters (such as the input scales of
       harmonics), these are trained on the subset too, in turns with q. They are then marked not
       trainable, and stay so.
    2. Make a pass over all rows. It computes the bound at the present q, and the sites (Gaussian
       factors that stand for the likelihood of each row) that are tangent to it at this q.
    3. Take a natural-gradient step of size one: the new q is made of the prior and these sites. If
       that is not a Gaussian, or the next pass finds a lower bound, the step is halved, as often as
       needed. This can happen only with likelihoods that are not log-concave, or in the first
       passes.
    4. Train the parameters of the kernel and the mean function by L-BFGS on the sums over the
       sites. This reads no data and costs O(M^3) a step. The parameters of the likelihood take one
       Newton step.
    5. Repeat from step 2 until the bound rises by less than ``tolerance``.

    **With** ``num_inducing`` the data choose the features too, as in :func:`fit_sgpr`, among
    harmonics or waves of a box. This happens in step 1: chosen are the features that would most
    raise the log normaliser of the sites of up to 20,000 rows, with input scales that were trained
    on the subset. :attr:`RowsFit.choice` says what was done, and ``model.inducing_variable``
    holds the chosen features. Choosing the harmonics of largest prior variance
    (``SphericalHarmonics.for_data``) takes less time, but does not look at the targets.

    The optimum is that of ``gpflow.models.SVGP``; log-concave likelihoods take five to ten passes.
    If f can separate the labels without error, the kernel's variance grows
    without limit; a warning says so.

    :param model: its parameters and q are trained in place, starting from their present values.
    :param num_inducing: the largest number M of features to choose; None keeps the features of the
        model.
    :param max_passes: the largest number of passes over all rows. The model is left at the best
        point that a pass has evaluated: a step that no pass has followed is not kept.
    :param tolerance: in nats of the bound over all rows; by default a millionth for each row, and
        at least 0.01.
    :param steps: the largest number of L-BFGS iterations between two passes; with 0 all parameters
        keep their values, and only q is computed.
    :param max_seconds: no new pass is started after this time; None for no limit.
    :param subset_size: the number of rows to draw, without replacement; all rows, if there are
        fewer. No rows are drawn if no feature parameter is trainable and there are at most four
        times as many rows.
    :param subset_steps: the largest number of L-BFGS iterations for the features on the subset.
    :param seed: the seed for drawing the subset.
    :param checkpoint_dir: a folder in which the state after each pass is kept (the last three).
        Features are not: a run that is resumed, on a model that is built anew, chooses the same
        again, and a folder of others is refused.
    :param resume: continue from what is in ``checkpoint_dir``.
    :param progress: show a progress bar.
    :raises ValueError: for wrong arguments, a model of another class, or targets that the
        likelihood cannot have.
    """
    started = time.perf_counter()
    sizes: dict[str, Any] = {"subset_size": subset_size, "subset_steps": subset_steps}
    check_recipe(model, DualSVGP, num_inducing, sizes, checkpoint_dir, resume)
    integer("max_passes", max_passes, at_least=1)
    if tolerance is not None:
        number("tolerance", tolerance, at_least=0)
    integer("steps", steps, at_least=0)
    if max_seconds is not None:
        number("max_seconds", max_seconds, above=0)
    how: dict[str, Any] = {"steps": steps, "tolerance": tolerance}
    trainable = {n: p for n, p in model.feature_parameters.items() if p.trainable}

    def with_sites(rows: tuple[Array, Array]) -> RowsWithSites:
        some: RowsWithSites = model.model_of(rows, RowsWithSites)
        some.how = how
        return some

    choice, names, some = None, tuple(trainable), None
    if num_inducing is not None:
        choice, names, some = choose_features(
            model,
            int(num_inducing),
            with_sites,
            RowsWithSites.train,
            growth=_GROWTH,
            **sizes,
            seed=seed,
            progress=progress,
        )
    with frozen(trainable.values()):
        passes = Passes(model, **how, checkpoint_dir=checkpoint_dir, resume=resume)
    if not passes.elbos:
        rows = model.num_rows
        is_large = rows is None or rows > _LARGE * subset_size
        if num_inducing is None and (trainable or is_large):
            some = with_sites(model.draw(subset_size, seed=seed))
            some.train(subset_steps)
        if some is not None:
            model.assign_sites(some.sites)
    for parameter in trainable.values():
        gpflow.set_trainable(parameter, False)
    subset_seconds = time.perf_counter() - started
    ending = passes.run(max_passes, max_seconds=max_seconds, started=started, progress=progress)
    warn_of_separation(model, passes.best.result)
    return RowsFit(
        steps=len(passes.elbos),
        first_step=0,
        elbos=np.array(passes.elbos),
        elbo=passes.best.result.elbo,
        metrics=(),
        seconds=time.perf_counter() - started,
        reason=ending.reason,
        message=ending.message,
        checkpoint=passes.checkpoints.latest,
        frozen=names,
        choice=choice,
        subset=None,
        subset_seconds=subset_seconds,
        pass_seconds=passes.seconds,
    )


def warn_of_separation(model: DualSVGP, result: PassResult) -> None:
    """Warn if labels are almost certain under a kernel whose variance has become very large.

    :param result: Of the last pass.
    """
    if not isinstance(model.likelihood, (Bernoulli, MultiClass, Softmax)):
        return
    if result.mean_expectation < _CERTAIN or not model.kernel.trainable_parameters:
        return
    try:
        X, _ = model.draw(_ROWS)
    except ValueError:  # some rows were taken away
        return
    deviation = float(np.sqrt(np.mean(model.kernel(X, full_cov=False))))
    if deviation > _LARGE_DEVIATION:
        warn(
            "data: f tells the labels apart almost without error (their expected log-likelihood is "
            f"{result.mean_expectation:.2g} on average), so that the bound rises with the "
            f"variance of the kernel without end: the prior's standard deviation is {deviation:.3g}"
            " by now. Predictions away from the data are too certain; keep the variance "
            "(gpflow.set_trainable(kernel.variance, False)), or give it a prior."
        )
