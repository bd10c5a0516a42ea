"""``fit``: trains a model by L-BFGS, or by Adam (or another optimizer) and natural gradients."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import tensorflow as tf

from ..models.scales import warn_of_data
from ..models.trained import warn_of_fit
from .arguments import FitArguments
from .compiled import CompiledFunctions
from .data import Data, make_batches
from .draws import draw_for_step
from .endings import Ending, Endings
from .gradient_steps import run_gradient_steps
from .lbfgs import run_lbfgs
from .preparation import Preparation, prepare
from .progress import Callback, Recorder
from .replicas import Replicas
from .results import FitResult, NonFiniteError
from .settings import Method
from .step_sizes import NaturalGradient
from .validation import check_columns, failing_likelihood


def fit(
    model: gpflow.models.BayesianModel,
    data: Data = None,
    *,
    method: Method | None = None,
    steps: int = 1000,
    max_seconds: float | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    optimizer: Any = None,
    learning_rate: float | None = None,
    natural_gradient: NaturalGradient = None,
    alternate: bool = False,
    options: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    callback_every: int = 100,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    progress: bool = True,
    jit_compile: bool = False,
    strategy: tf.distribute.Strategy | None = None,
) -> FitResult:
    """
    Train a GPflow model, by L-BFGS on all rows or by Adam and natural gradients on minibatches::

        fit(model, (X, Y))  # L-BFGS on all of the data
        fit(model, (X, Y), batch_size=256)  # Adam, and natural gradients for q
        fit(model, (X, Y), batch_size=256, natural_gradient=False)  # Adam for everything
        fit(model, (X, Y), batch_size=256, checkpoint_dir="run", resume=True)

    Compiled functions are kept with the model and reused by its next fit, as long as the model's
    structure, its ``trainable`` flags and the columns of the data are the same.

    Every trainable parameter is trained; no ``trainable`` flag is changed. The objective to be
    maximised is ``-model.training_loss``: the ELBO (or log marginal likelihood) plus the log
    density of priors.

    **Resuming.** A fit that is stopped and run again with ``resume=True`` and the same arguments
    arrives at the same parameters as an uninterrupted fit, to the last bit, on the same machine
    with the same number of threads. This includes :class:`interdomain.deep.DeepGP`, whose random
    draws depend on the number of the step. It does not hold for other losses that draw random
    numbers (Monte Carlo likelihoods), for a Dataset that is shuffled without a seed, or for GPU
    operations that are deterministic only after
    ``tf.config.experimental.enable_op_determinism()``.

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
    :param method: "l-bfgs" or "adam". By default "adam" for minibatches, a Dataset, an
        ``optimizer``, a ``learning_rate`` or a ``natural_gradient``, otherwise "l-bfgs". L-BFGS on
        a Dataset reads it once and holds it in memory.
    :param steps: the number of updates, or the largest number of L-BFGS iterations, counted from
        the first run: a fit that is resumed at step 400 with ``steps=1000`` does 600 more.
    :param max_seconds: end after the step during which this number of seconds has passed since the
        call, compilation included; at least one step is done. None for no limit. ``resume=True``
        continues from there. Several workers of a strategy check the time only every
        ``callback_every`` steps.
    :param batch_size: the number of rows of a minibatch, drawn without replacement from arrays; the
        ``N % batch_size`` rows left at the end of an epoch's order are skipped. None for all rows
        at every step.
    :param seed: the seed of the order of the minibatches, which depends only on this seed and the
        step.
    :param optimizer: an instance of a tf_keras or Keras 3 optimizer, in place of Adam. It updates
        q, too, unless ``natural_gradient`` is passed.
    :param learning_rate: the learning rate of Adam, 0.01 by default.
    :param natural_gradient: whether q is updated by natural gradients, and everything else by Adam.
        True for the default step sizes; a number in (0, 1] for a constant step size; a function (or
        a schedule of tf_keras) from the number of previous steps to such a number; False for Adam
        alone. By default True if the method is "adam", q is trainable, each column of Y has one
        latent GP (not the classes of ``Softmax``) and no ``optimizer`` is passed (``python -m
        benchmarks.natural_gradients --kinds race``, ``python -m benchmarks.pareto``).

        q is given by the pairs in ``model.variational_parameters``, or by (``model.q_mu``,
        ``model.q_sqrt``), with a full or a diagonal q_sqrt. These are updated whether or not they
        are marked trainable. At its optimum a diagonal q (``q_diag=True``) loses up to 0.05 nats a
        row of the bound and 0.003 of the predictions' log density; inducing points, whose features
        are not orthogonal, lose no more than harmonics (``python -m benchmarks.many_features
        --kinds cost``).

        With True the step size for a full q rises from 0.001 to 0.1 in 20 steps, and that for a
        diagonal q falls as ``0.1 / (1 + step / 300)``; with n > 10 q's, ``1 / n`` takes the place
        of 0.1. One evaluation of the loss and its gradients serves both updates. For a diagonal q
        the loss is evaluated once more, to shorten a step of the means that overshoots. A step
        after which a covariance would not be positive definite is shortened, too. Several pairs are
        updated at once, each as if the others were fixed: if n full q's explain the same data (a
        base and its orthogonal variables, or the blocks of a sum), choose ``1 / n`` of the step
        size that suits a single q.
    :param alternate: compute the gradient of the other parameters at the new q, in an evaluation of
        its own, and not at the q before the update. A step takes 1.2 to 1.7 times as long, which
        can pay off in the end (``python -m benchmarks.natural_gradients``). Only with natural
        gradients.
    :param options: options of SciPy's L-BFGS-B: ``ftol``, ``gtol``, ``maxcor``, ``maxls``,
        ``maxfun``.
    :param callbacks: called as ``callback(step, model)`` every ``callback_every`` steps and at the
        end. If a callback returns a mapping from names to numbers, it is shown on the progress bar
        and kept in the result. If it raises :class:`StopFit`, the fit ends after this step. A
        callback should not change the model. With a strategy every worker calls the callbacks, and
        if one worker ends the fit, it ends on all.
    :param checkpoint_dir: where to write checkpoints: at the start, every ``checkpoint_every``
        steps (100 by default) and at the end; the last three are kept. A checkpoint is written
        only after a step whose numbers were all finite, and
        ``tf.train.Checkpoint(model=model).restore(result.checkpoint)`` reads it anywhere.
    :param checkpoint_every: the number of steps between checkpoints. L-BFGS also restarts after
        this number of iterations, without its memory of the curvature, which cannot be stored. Each
        restart costs some iterations, so do not choose it below about 50. To stop L-BFGS by
        ``steps`` and resume it exactly, let ``steps`` be a multiple of it; a fit that is killed is
        resumed exactly in any case.
    :param resume: continue from the last checkpoint in ``checkpoint_dir``, if there is one. If that
        is damaged, warn and continue from the last good one.
    :param progress: show a progress bar with the running ELBO on the standard error stream.
    :param jit_compile: compile the step with XLA.
    :param strategy: a ``tf.distribute`` strategy, such as ``MirroredStrategy`` or
        ``MultiWorkerMirroredStrategy``, in whose scope the model was built (and an ``optimizer``,
        of tf_keras). The rows of each batch are spread over its replicas; loss and gradients are
        those of one device on the whole batch. All workers must be given the same arrays, with rows
        in the same order. A Dataset must have batches for all replicas together. tf.data splits it
        by its ``auto_shard_policy``: either by files, if there are any, so that batches have other
        rows than on one device, or within each batch (DATA). Any shuffling needs a
        seed. Only the chief writes checkpoints and shows progress; all workers must see the same
        ``checkpoint_dir``, from which they resume.
        Strategies do not work with L-BFGS, XLA or models that hold their data.
    :warns UserWarning: before training, if a column of X, or Y under a Gaussian likelihood, is far
        from the scale that the model assumes (1, a lengthscale, a standard deviation of the prior):
        if its range is above 1,000 times or below a thousandth of it, if the mean of a column is
        100 ranges away from the centre of a zonal kernel, or if the mean of Y is 100 standard
        deviations away from its prior. Also for rows outside of the interval of
        :class:`~interdomain.inducing_variables.IntervalFourierFeatures`. Columns of integers and
        kernels on patches are not checked. Of a Dataset, only the first batch that a step takes is
        checked. After training, if the features represent only a part of the kernel and the bound
        is still reduced by more than 0.05 nats a row for the rest; and if the lengthscales of a
        :class:`~interdomain.kernels.Periodized` kernel have outgrown the margin of its box, or its
        frequencies.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. That includes a model whose ``num_data``
        is None with minibatches, or is not the number of rows, because its ELBO would be scaled
        wrongly; and a ``checkpoint_dir`` that holds a checkpoint of another fit, or none that can
        be read, or that is a file.
    :raises OSError: when a checkpoint cannot be written; the last good one is unchanged.
    :raises WorkerLostError: when another worker of the strategy ends or cannot be reached.
    :raises NonFiniteError: when the loss, a gradient or an updated parameter is NaN or infinite.
        The model returns to the last parameters that had a finite loss, the last good checkpoint is
        unchanged, and the error names both. A line search of L-BFGS may try such a point: it is
        rejected and a nearer one is tried (``FitResult.message`` counts them). The error is raised
        only if L-BFGS starts at such a point, or finds no better point without a NaN.
    """
    started = time.perf_counter()
    arguments = FitArguments(
        method=method,
        steps=steps,
        max_seconds=max_seconds,
        batch_size=batch_size,
        seed=seed,
        optimizer=optimizer,
        learning_rate=learning_rate,
        natural_gradient=natural_gradient,
        alternate=alternate,
        options=options,
        callbacks=callbacks,
        callback_every=callback_every,
        checkpoint_dir=checkpoint_dir,
        checkpoint_every=checkpoint_every,
        resume=resume,
        progress=progress,
        jit_compile=jit_compile,
        strategy=strategy,
    ).checked(data)
    full_batch = arguments.full_batch
    replicas = Replicas(strategy)
    replicas.check_model(model)
    batches = make_batches(
        model, data, full_batch=full_batch, batch_size=batch_size, seed=seed, strategy=strategy
    )
    columns = batches.columns()
    CompiledFunctions.of(model).get(("checked", columns), lambda: check_columns(model, columns))
    arrays = batches.arrays()
    if arrays is None:
        batches.tell_first(lambda X, Y: warn_of_data(model, X, Y))
    else:
        warn_of_data(model, *arrays)
    prepared = prepare(model, arguments, batches, replicas)
    first_step = replicas.start(prepared.store)
    with prepared.recorder(first_step) as recorder:
        try:
            step, ending = _run_steps(prepared, recorder, first_step, started)
        except NonFiniteError as error:
            rows = arrays or batches.first
            cause = None if rows is None else failing_likelihood(model, *rows)
            if cause is None:
                raise
            where = error.reason, error.step, error.kept_step, error.checkpoint
            raise NonFiniteError(*where, cause) from error
    seen = arrays or batches.first
    warn_of_fit(model, None if seen is None else seen[0])
    return FitResult(
        steps=step,
        first_step=first_step,
        elbos=recorder.elbos,
        elbo=recorder.running_elbo,
        metrics=tuple(recorder.metrics),
        seconds=time.perf_counter() - started,
        reason=ending.reason,
        message=ending.message,
        checkpoint=prepared.store.latest,
    )


def _run_steps(
    prepared: Preparation, recorder: Recorder, first_step: int, started: float
) -> tuple[int, Ending]:
    """
    The steps that are left after ``first_step``.

    :param started: when the fit began, by ``time.perf_counter``.
    :returns: the last step, and why it was the last.
    """
    arguments, store = prepared.arguments, prepared.store
    ended = _ended_before(prepared, first_step)
    if ended is not None:
        recorder.evaluate(first_step, last=True)
        return first_step, ended
    common: dict[str, Any] = {
        "first_step": first_step,
        "checkpoint_every": arguments.checkpoint_every,
        "store": store,
        "recorder": recorder,
        "endings": Endings(
            recorder,
            prepared.replicas.workers,
            started=started,
            steps=arguments.steps,
            max_seconds=arguments.max_seconds,
            every=arguments.callback_every,
        ),
        "jit_compile": arguments.jit_compile,
    }
    if arguments.full_batch:
        draw_for_step(prepared.model, 0)  # the same at all steps: a function to be minimised
        return run_lbfgs(
            prepared.model,
            prepared.batches.batch(0),
            prepared.updates.variables,
            options=arguments.options or {},
            steps=arguments.steps,
            ended=prepared.ended,
            **common,
        )
    return run_gradient_steps(
        prepared.model,
        prepared.batches,
        replicas=prepared.replicas,
        updates=prepared.updates,
        **common,
    )


def _ended_before(prepared: Preparation, first_step: int) -> Ending | None:
    """How the fit of a checkpoint had ended, if there is nothing left to do."""
    ended = prepared.ended.numpy().decode()
    if not ended and first_step < prepared.arguments.steps:
        return None
    return Ending(ended or "steps", "the checkpoint is of a fit that had ended")


def fit_quietly(model: Any, **arguments: Any) -> None:
    """Fit by L-BFGS without warnings about the features or the kernel, which are soon replaced."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="(inducing_variable|kernel): ", category=UserWarning
        )
        fit(model, method="l-bfgs", **arguments)
