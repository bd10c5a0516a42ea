"""``fit``: trains a model by L-BFGS, or by Adam (or another optimizer) and natural gradients."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import tensorflow as tf

from ..models.scales import warn_of_data
from ..models.trained import warn_of_fit
from .arguments import FitArguments
from .checkpoints import CheckpointStore
from .compiled import CompiledFunctions
from .data import Data, make_batches
from .draws import draw_for_step
from .endings import Ending, Endings
from .gradient_steps import run_gradient_steps
from .lbfgs import run_lbfgs
from .preparation import Preparation, prepare
from .progress import Callback, Recorder
from .replicas import Replicas
from .results import FitResult
from .settings import Method
from .step_sizes import NaturalGradient
from .validation import check_columns


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
    Train a GPflow model: full batches by L-BFGS, or minibatches by Adam and natural gradients::

        fit(model, (X, Y))  # L-BFGS on all of the data
        fit(model, (X, Y), batch_size=256)  # Adam, and natural gradients for q
        fit(model, (X, Y), batch_size=256, natural_gradient=False)  # Adam for everything
        fit(model, (X, Y), batch_size=256, checkpoint_dir="run", resume=True)

    What is compiled is kept with the model and used by the next fit of it, as long as the model's
    structure, its ``trainable`` flags and the columns of the data are the same.

    Every trainable parameter is trained; no ``trainable`` flag is changed. What is maximised is
    ``-model.training_loss``: the ELBO (or log marginal likelihood) plus the log density of priors.

    **Resuming.** A fit that is stopped and run again with ``resume=True`` and the same arguments
    arrives at the same parameters as one that was not, to the last bit, on the same machine with
    the same number of threads. :class:`interdomain.deep.DeepGP` draws by the number of the step,
    and is resumed exactly, too. This does not hold for any other loss that draws random numbers
    (Monte Carlo likelihoods), for a Dataset shuffled without a seed, nor for operations on GPUs
    that are deterministic only after ``tf.config.experimental.enable_op_determinism()``.

    :param model: a model that is given its data (SVGP and its like) or holds them (GPR, SGPR, ...).
    :param data: (X ``[N, D]``, Y ``[N, P]``), converted to ``gpflow.default_float()`` except for an
        integer Y, as likelihoods over classes need it: of minibatches each for itself, so that
        memory-mapped arrays stay in their files; or a ``tf.data.Dataset`` of such batches, used as
        given: batch it, and shuffle it with a seed (to resume in another process, under the
        same ``tf.random.set_seed``, which is part of it). A Dataset that ends starts again. None
        for a model that holds its data.
    :param method: "l-bfgs" or "adam". By default "adam" for minibatches, a Dataset, an
        ``optimizer``, a ``learning_rate`` or a ``natural_gradient``, otherwise "l-bfgs". L-BFGS on
        a Dataset reads it once and holds it in memory.
    :param steps: the number of updates, or the most L-BFGS iterations, counted from the first run:
        resumed at step 400, ``steps=1000`` does 600 more.
    :param max_seconds: end after the step during which this number of seconds has passed since the
        call, compilation included; at least one step is done. None for no limit. ``resume=True``
        continues from there. Several workers of a strategy look at the clock every
        ``callback_every`` steps.
    :param batch_size: the number of rows of a minibatch, drawn without replacement from arrays; the
        ``N % batch_size`` rows left at the end of an epoch's order are skipped. None for all rows
        at every step.
    :param seed: the seed of the order of the minibatches, which depends on it and the step only.
    :param optimizer: an instance of a tf_keras or Keras 3 optimizer, in place of Adam. It updates
        q, too, unless ``natural_gradient`` is passed.
    :param learning_rate: the learning rate of Adam, 0.01 by default.
    :param natural_gradient: natural gradients for q, and Adam for everything else: True for the
        default step sizes; a number in (0, 1] for a constant one; a function (or a schedule of
        tf_keras) from the number of steps before to such a number; False for Adam alone. By
        default True if the method is "adam", q is trainable, each column of Y has one latent GP
        (not the classes of ``Softmax``) and no ``optimizer`` is passed (``python -m
        benchmarks.natural_gradients --kinds race``, ``python -m benchmarks.pareto``).
        q are the pairs in
        ``model.variational_parameters``, or (``model.q_mu``, ``model.q_sqrt``), with a full or a
        diagonal q_sqrt (``q_diag=True``; at its optimum it loses up to 0.05 nats a row of the bound
        and 0.003 of the predictions' log density, with points, whose features are not orthogonal,
        no more than with harmonics: ``python -m benchmarks.many_features --kinds cost``). They are
        updated whether or not they are marked trainable. With True the size for a full q rises
        from 0.001 to 0.1 in 20 steps, and that for a diagonal one falls as ``0.1 / (1 + step /
        300)``; of more than ten q's, an n-th takes the place of 0.1. One evaluation of the loss and
        its gradients serves both updates; for a diagonal q the loss is evaluated once more, to
        shorten a step of the means that overshoots.
        A step after which a covariance would not be positive definite is shortened, too. Several
        pairs are updated at once, each as if the others were fixed: where n full ones explain the
        same data (a base and its orthogonal variables, the blocks of a sum), choose an n-th of the
        step that suits a single one.
    :param alternate: give the other parameters a gradient of their own, at the new q, in place of
        that at which q was updated: 1.2 to 1.7 times the seconds for a step, which more can be
        worth in the end (``python -m benchmarks.natural_gradients``). Only with natural gradients.
    :param options: for SciPy's L-BFGS-B: ``ftol``, ``gtol``, ``maxcor``, ``maxls``, ``maxfun``.
    :param callbacks: called as ``callback(step, model)`` every ``callback_every`` steps and at the
        end. A mapping from names to numbers that one returns is shown on the progress bar and kept
        in the result. One that raises :class:`StopFit` ends the fit after this step. A callback
        should not change the model. With a strategy every worker calls them, and the first that
        ends the fit ends it on all.
    :param checkpoint_dir: where to write checkpoints: at the start, every ``checkpoint_every``
        steps (100 by default) and at the end; the last three are kept. The folder is this fit's
        alone while it runs. A checkpoint is written only after a step whose numbers were all
        finite, by ``tf.train.Checkpoint(model=...)``, so that
        ``tf.train.Checkpoint(model=model).restore(result.checkpoint)`` reads it anywhere.
    :param checkpoint_every: for L-BFGS also the number of iterations after which it starts afresh
        without its memory of the curvature, which cannot be stored: each fresh start costs some
        iterations, so do not choose it below about 50. To stop and resume L-BFGS exactly, let
        ``steps`` be a multiple of it; being killed at any time is exact anyway.
    :param resume: continue from the last checkpoint in ``checkpoint_dir``, if there is one; where
        that is damaged, with a warning, from the last good one.
    :param progress: show a progress bar with the running ELBO on the standard error stream.
    :param jit_compile: compile the step with XLA.
    :param strategy: a ``tf.distribute`` strategy, such as ``MirroredStrategy`` or
        ``MultiWorkerMirroredStrategy``, in whose scope the model was built (and an ``optimizer``,
        of tf_keras). The rows of each batch are spread over its replicas; loss and gradients are
        those of one device on the whole batch. Arrays, and their order, are the same on all
        workers. A Dataset has batches of all replicas together, and tf.data splits them by its
        ``auto_shard_policy``: by files where it finds some, so that batches have other rows than on
        one device, or each batch (DATA); whatever it shuffles needs a seed, and a resumed fit
        skips what was seen. The chief alone writes checkpoints and shows progress; all workers see
        the same ``checkpoint_dir``, and resume from it. Not for L-BFGS and XLA, nor for models that
        hold their data.
    :warns UserWarning: for columns of X, or of Y under a Gaussian likelihood, whose range is above
        1,000 times what the model assumes (1, a lengthscale, a standard deviation of the prior) or
        below a thousandth, or whose mean is 100 ranges away from the centre of a zonal kernel or
        100 standard deviations from the prior of Y; and for rows outside of the interval of
        :class:`~interdomain.inducing_variables.IntervalFourierFeatures`; not for columns of
        integers and kernels on patches. Of a Dataset, the first batch that a step takes is looked
        at, and no other is read. Afterwards, where features end and a kernel
        does not, if the bound still pays more than 0.05 a row for what is left out; and of a
        :class:`~interdomain.kernels.Periodized` kernel whose lengthscales have outgrown the margin
        of its box, or its frequencies.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. That includes a model whose ``num_data``
        is None with minibatches, or is not the number of rows, because its ELBO would be scaled
        wrongly; and a ``checkpoint_dir`` that holds a checkpoint of another configuration, or
        none that can be read, or is a file, or in use by another fit.
    :raises OSError: when a checkpoint cannot be written; the last good one is unchanged.
    :raises WorkerLostError: when another worker of the strategy ends or cannot be reached.
    :raises NonFiniteError: when the loss, a gradient or an updated parameter is NaN or infinite.
        The model returns to the last parameters that had a finite loss, the last good checkpoint is
        unchanged, and the error names both. A line search of L-BFGS may try such a point, rejects
        it and tries a nearer one (``FitResult.message`` gives their number); the error is raised
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
    with (
        replicas.started(prepared.store, resume) as first_step,
        prepared.recorder(first_step) as recorder,
    ):
        step, ending = _run_steps(prepared, recorder, first_step, started)
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
    ended = _ended_before(store, first_step, arguments.steps)
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
            **common,
        )
    return run_gradient_steps(
        prepared.model,
        prepared.batches,
        replicas=prepared.replicas,
        updates=prepared.updates,
        **common,
    )


def _ended_before(store: CheckpointStore, first_step: int, steps: int) -> Ending | None:
    """How the fit of a checkpoint had ended, if there is nothing left to do."""
    message = "the checkpoint is of a fit that had ended"
    if store.converged:
        return Ending("converged", message)
    if store.stopped:
        return Ending("stalled", message)
    return Ending("steps", message) if first_step >= steps else None
