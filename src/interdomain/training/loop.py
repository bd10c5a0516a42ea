"""``fit``: trains a model by L-BFGS, or by Adam (or another optimizer) and natural gradients."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import tensorflow as tf

from .._arguments import integer, number
from ..regression.rows_model import RowsModel
from ..regression.scales import warn_of_data
from .collapsed import fit_collapsed
from .compiled import kept
from .data import Data, batches_of, check_columns
from .lbfgs import LBFGS
from .natural_gradients import NaturalGradient
from .replicas import Replicas
from .results import Callback, FitResult
from .run import train
from .sgpr import fit_sgpr
from .steps import GradientSteps
from .trained import warn_of_fit


def fit(
    model: gpflow.models.BayesianModel,
    data: Data = None,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    optimizer: Any = None,
    natural_gradient: NaturalGradient = None,
    options: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    every: int = 100,
    max_seconds: float | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
    strategy: tf.distribute.Strategy | None = None,
) -> FitResult:
    """Train a GPflow model, by L-BFGS on all rows or by Adam and natural gradients on minibatches::

        fit(model, (X, Y))  # L-BFGS on all of the data
        fit(model, (X, Y), batch_size=256)  # Adam, and natural gradients for q
        fit(model, (X, Y), batch_size=256, natural_gradient=False)  # Adam for everything
        fit(model, (X, Y), batch_size=256, checkpoint_dir="run", resume=True)

    L-BFGS is for all rows at once. Minibatches, a Dataset, an ``optimizer`` or a
    ``natural_gradient`` ask for Adam. Compiled functions are kept with the model and reused by its
    next fit, as long as the model's structure, its ``trainable`` flags and the columns of the data
    are the same.

    A :class:`~interdomain.models.DualSVGP` is trained by :func:`fit_collapsed`, whose passes
    are the steps (20 by default), and a :class:`~interdomain.models.StructuredSGPR` with trainable
    features of rows that are not in memory by :func:`fit_sgpr`. These functions choose features,
    too, and say more of what they did. What they do not take (such as ``callbacks``) is refused.

    Otherwise every trainable parameter is trained, and no ``trainable`` flag is changed. The
    objective to be maximised is ``-model.training_loss``: the ELBO (or log marginal likelihood)
    plus the log density of priors.

    **Resuming.** A fit by minibatches that is stopped and run again with ``resume=True`` and the
    same arguments arrives at the same parameters as an uninterrupted fit, to the last bit, on the
    same machine with the same number of threads. This includes :class:`interdomain.deep.DeepGP`,
    whose random draws depend on the number of the step. It does not hold for other losses that draw
    random numbers (Monte Carlo likelihoods), for a Dataset that is shuffled without a seed, or for
    GPU operations that are deterministic only after
    ``tf.config.experimental.enable_op_determinism()``. L-BFGS goes on from its last checkpoint
    without its memory of the curvature, and arrives at the same optimum by another way.

    :param model: a model that is given its data (such as SVGP) or holds them (GPR, SGPR, ...).
    :param data: (X ``[N, D]``, Y ``[N, P]``), or a ``tf.data.Dataset`` of such batches; None for a
        model that holds its data. Arrays are converted to ``gpflow.default_float()``, Y to what the
        likelihood takes: integers for Softmax; for a likelihood that is not derived from one of
        GPflow's, an integer Y stays integer. NaN in Y is for a likelihood of your own that leaves
        out what is missing, and has an attribute ``allow_nan = True``. Each minibatch is converted
        separately, so that memory-mapped arrays stay in their files. A Dataset is used as given:
        batch it, and shuffle it with a seed (to resume in another process, also call the same
        ``tf.random.set_seed`` there, on which the order depends). A Dataset that ends starts
        again; a resumed fit skips the batches before its step.
    :param steps: the number of updates, or the largest number of L-BFGS iterations, 1000 by
        default, counted from the first run: a fit that is resumed at step 400 does 600 more.
    :param batch_size: the number of rows of a minibatch, drawn without replacement from arrays; the
        ``N % batch_size`` rows left at the end of an epoch's order are skipped. None for all rows
        at every step.
    :param seed: the seed of the order of the minibatches, which depends only on this seed and the
        step.
    :param optimizer: the learning rate of Adam, 0.01 by default; or an instance of a tf_keras or
        Keras 3 optimizer in place of Adam. An instance updates q, too, unless ``natural_gradient``
        is passed.
    :param natural_gradient: whether q is updated by natural gradients, and everything else by Adam.
        True for the default step sizes; a number in (0, 1] for a constant step size; a function (or
        a schedule of tf_keras) from the number of previous steps to such a number; False for Adam
        alone. By default True without L-BFGS, if q is trainable, each column of Y has one
        latent GP (not the classes of ``Softmax``) and no ``optimizer`` is passed (``python -m
        benchmarks.pareto``).

        q is given by the pairs in ``model.variational_parameters``, or by (``model.q_mu``,
        ``model.q_sqrt``), with a full or a diagonal q_sqrt. These are updated whether or not they
        are marked trainable.

        With True the step size for a full q rises from 0.001 to 0.1 in 20 steps, and that for a
        diagonal q falls as ``0.1 / (1 + step / 300)``; with n > 10 q's, ``1 / n`` takes the place
        of 0.1. A step of the means of a diagonal q that overshoots is shortened, and one after
        which a covariance would not be positive definite. Several pairs are updated at once, each
        as if the others were fixed: if n full q's explain the same data (a base and its orthogonal
        variables, or the blocks of a sum), choose ``1 / n`` of the size that suits a single q.
    :param options: options of SciPy's L-BFGS-B: ``ftol``, ``gtol``, ``maxcor``, ``maxls``,
        ``maxfun``.
    :param callbacks: called as ``callback(step, model)`` every ``every`` steps and at the end. If a
        callback returns a mapping from names to numbers, it is shown on the progress bar and kept
        in the result. If it raises :class:`StopFit`, the fit ends after this step. A callback
        should not change the model. With a strategy every worker calls the callbacks, and if one
        worker ends the fit, it ends on all.
    :param every: the number of steps between two calls of the callbacks, and two checkpoints.
    :param max_seconds: end after the step during which this number of seconds has passed since the
        call, compilation included; at least one step is done. None for no limit. ``resume=True``
        continues from there. Several workers of a strategy check the time only every ``every``
        steps.
    :param checkpoint_dir: where to write checkpoints: at the start, every ``every`` steps and at
        the end; the last three are kept. Give each fit a folder of its own. A checkpoint is written
        only where the loss is finite, and
        ``tf.train.Checkpoint(model=model).restore(result.checkpoint)`` reads it anywhere.
    :param resume: continue from the last checkpoint in ``checkpoint_dir``, if there is one. If that
        is damaged, warn and continue from the last good one.
    :param progress: show a progress bar with the running ELBO on the standard error stream.
    :param strategy: a ``tf.distribute`` strategy, such as ``MirroredStrategy`` or
        ``MultiWorkerMirroredStrategy``, in whose scope the model was built (and an ``optimizer``,
        of tf_keras). The rows of each batch are spread over its replicas; loss and gradients are
        those of one device on the whole batch. All workers must be given the same arrays, with rows
        in the same order. A Dataset must have batches for all replicas together. tf.data splits it
        by its ``auto_shard_policy``: either by files, if there are any, so that batches have other
        rows than on one device, or within each batch (DATA). Any shuffling needs a seed. Only the
        chief writes checkpoints and shows progress; all workers must see the same
        ``checkpoint_dir``, from which they resume. Strategies do not work with L-BFGS or models
        that hold their data.
    :warns UserWarning: before training, if a column of X, or Y under a Gaussian likelihood, is far
        from the scale that the model assumes (1,000 times, or 100 ranges or standard deviations
        away); of a Dataset, the first batch is looked at. After training, if the features represent
        only a part of the kernel and the bound is still reduced by more than 0.05 nats a row for
        the rest; and if the lengthscales of a :class:`~interdomain.kernels.Periodized` kernel have
        outgrown the margin of its box, or its frequencies.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. That includes a model whose ``num_data``
        is None with minibatches, or is not the number of rows, because its ELBO would be scaled
        wrongly; and a ``checkpoint_dir`` that holds a checkpoint of another fit, or none that can
        be read, or that is a file.
    :raises OSError: when a checkpoint cannot be written; the last good one is unchanged.
    :raises tf.errors.OpError: when another worker of the strategy ends or cannot be reached.
        TensorFlow's error names it; start all workers again, with ``resume=True``.
    :raises NonFiniteError: when the loss, a gradient or an updated parameter is NaN or infinite;
        the error says which parameters the model has then. Such a point in a line search of L-BFGS
        is rejected, and a nearer one is tried (``FitResult.message`` counts them): the error is
        raised only if L-BFGS starts at such a point, or finds no better point without a NaN.
    """
    arguments = {**locals()}
    if isinstance(model, RowsModel) and model.needs_recipe:
        return _fit_by_recipe(model, arguments)
    started = time.perf_counter()
    steps = 1000 if steps is None else integer("steps", steps, at_least=1)
    integer("seed", seed, at_least=0)
    integer("every", every, at_least=1)
    if max_seconds is not None:
        number("max_seconds", max_seconds, above=0)
    by_lbfgs = optimizer is None and batch_size is None and not isinstance(data, tf.data.Dataset)
    by_lbfgs = by_lbfgs and (natural_gradient is None or natural_gradient is False)
    if options is not None and not by_lbfgs:
        raise ValueError(
            f"options: found {dict(options)}; they are for L-BFGS, and so without batch_size, "
            "optimizer and natural_gradient."
        )
    if strategy is not None and by_lbfgs:
        raise ValueError(
            f"strategy: L-BFGS runs on one device, found a {type(strategy).__name__}; pass a "
            "batch_size or an optimizer, or leave strategy out."
        )
    replicas = Replicas(strategy)
    batches = batches_of(model, data, batch_size=batch_size, seed=seed, strategy=strategy)
    columns = batches.columns
    kept(model, "checked", columns, lambda: check_columns(model, columns))
    if batches.arrays is not None:  # of a Dataset, the first batch is looked at
        warn_of_data(model, *batches.arrays)
    method: LBFGS | GradientSteps
    if by_lbfgs:
        method = LBFGS(model, batches.batch(0), options)
    else:
        method = GradientSteps(
            model, batches, replicas, optimizer=optimizer, natural_gradient=natural_gradient
        )
    result = train(
        model,
        method,
        batches,
        replicas,
        started=started,
        steps=steps,
        callbacks=callbacks,
        every=every,
        max_seconds=max_seconds,
        checkpoint_dir=checkpoint_dir,
        resume=resume,
        progress=progress,
    )
    warn_of_fit(model, None if batches.arrays is None else batches.arrays[0])
    return result


def _fit_by_recipe(model: RowsModel, arguments: dict[str, Any]) -> FitResult:
    """The fit of a model by its recipe, with those arguments of :func:`fit` that are no defaults.

    :raises ValueError: for one that the recipe does not have.
    """
    recipe: Any = {"fit_sgpr": fit_sgpr, "fit_collapsed": fit_collapsed}[model.recipe]
    accepted = inspect.signature(recipe).parameters
    for name, parameter in inspect.signature(fit).parameters.items():
        if arguments[name] is parameter.default:
            del arguments[name]
        elif name not in accepted:
            raise ValueError(
                f"{name}: a {type(model).__name__} is trained on its own rows by "
                f"interdomain.training.{model.recipe}, which has no {name}; leave it out."
            )
    if recipe is fit_collapsed and "steps" in arguments:  # each pass is one
        arguments["max_passes"] = integer("steps", arguments.pop("steps"), at_least=1)
    result: FitResult = recipe(**arguments)
    return result
