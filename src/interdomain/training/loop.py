"""``fit``: checks the arguments, chooses the method, and runs the steps."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import tensorflow as tf

from .._arguments import boolean, integer, number
from ..models.scales import warn_of_data, warn_of_left_variance
from .checkpoints import CheckpointStore
from .compiled import CompiledFunctions
from .data import Data, make_batches
from .endings import Ending, Endings
from .gradient_steps import run_gradient_steps
from .lbfgs import run_lbfgs
from .progress import Callback, Recorder
from .replicas import Replicas
from .results import FitResult
from .settings import Method, gradient_updates, lbfgs_updates, resolve_method
from .validation import check_columns

_DEFAULT_CHECKPOINT_EVERY = 100


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
    natural_gradient: float | None = None,
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
    Train a GPflow model: full batches by L-BFGS, or minibatches by Adam and natural gradients.

    >>> fit(model, (X, Y))  # L-BFGS on all of the data
    >>> fit(model, (X, Y), batch_size=256)  # Adam
    >>> fit(model, (X, Y), batch_size=256, natural_gradient=0.1)  # ... and natural gradients for q
    >>> fit(model, (X, Y), batch_size=256, checkpoint_dir="run", resume=True)

    What is compiled is kept with the model and used by the next fit of it, as long as the model's
    structure, its ``trainable`` flags and the columns of the data are the same.

    Every trainable parameter is trained; no ``trainable`` flag is changed. What is maximised is
    ``-model.training_loss``: the ELBO (or log marginal likelihood) plus the log density of priors.

    **Resuming.** A fit that is stopped and run again with ``resume=True`` and the same arguments
    arrives at the same parameters as one that was not, to the last bit, on the same machine with
    the same number of threads. The exceptions are not ours to mend: a loss that draws random
    numbers (Monte Carlo likelihoods), a Dataset shuffled without a seed, and on GPUs operations
    that are only deterministic after ``tf.config.experimental.enable_op_determinism()``.

    :param model: a model that is given its data (SVGP and its like) or holds them (GPR, SGPR, ...).
    :param data: (X ``[N, D]``, Y ``[N, P]``), converted to ``gpflow.default_float()`` save for an
        integer Y, which likelihoods over classes want; or a ``tf.data.Dataset`` of such batches,
        used as given: batch it, and shuffle it with a seed (to resume in another process, under the
        same ``tf.random.set_seed``, which is part of it). A Dataset that ends starts again. None
        for a model that holds its data.
    :param method: "l-bfgs" or "adam". By default "adam" for minibatches, a Dataset, an
        ``optimizer``, a ``learning_rate`` or a ``natural_gradient``, otherwise "l-bfgs". L-BFGS on
        a Dataset reads it once and holds it in memory.
    :param steps: updates, or at most so many L-BFGS iterations. Counted from the first run: resumed
        at step 400, ``steps=1000`` does 600 more.
    :param max_seconds: end after the step in which so many seconds of this call are over,
        compilation included; at least one step is done. None: never. ``resume=True`` goes on from
        there. Several workers of a strategy look at the clock every ``callback_every`` steps.
    :param batch_size: rows of a minibatch, drawn without replacement from arrays; the ``N %
        batch_size`` rows left at the end of an epoch's order are skipped. None: all rows, every
        step.
    :param seed: of the order of the minibatches, which depends on it and the step only.
    :param optimizer: an instance of a tf_keras or Keras 3 optimizer, in place of Adam.
    :param learning_rate: of Adam; 0.01 by default.
    :param natural_gradient: step size in (0, 1] of a natural gradient step for q, before each
        Adam step for everything else and on the same batch. q are the pairs in
        ``model.variational_parameters``, or (``model.q_mu``, ``model.q_sqrt``); q_sqrt must be full
        (``q_diag=False``). They are updated whether or not they are marked trainable. A step
        evaluates the loss twice. Several pairs move at once, each as if the others stood still:
        where they explain the same data (a base and its orthogonal variables, the blocks of a
        sum), n of them bear the n-th part of the step that one bears.
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
        at, and no other is read. Afterwards, where harmonics end and a kernel
        does not, if the bound still pays more than 0.05 a row for what is left out.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. That includes a model whose ``num_data``
        is None with minibatches, or is not the number of rows, because its ELBO would be scaled
        wrongly; and a ``checkpoint_dir`` that holds a checkpoint of another configuration, or
        none that can be read, or is a file, or in use by another fit.
    :raises OSError: when a checkpoint cannot be written; the last good one stays as it is.
    :raises WorkerLostError: when another worker of the strategy ends or cannot be reached.
    :raises NonFiniteError: when the loss, a gradient or an updated parameter is NaN or infinite.
        The model goes back to the last parameters that had a finite loss, the last good checkpoint
        stays as it is, and the error names both. A line search of L-BFGS may try such a point: it
        rejects it and comes nearer (``FitResult.message`` counts them), and the error is raised if
        L-BFGS starts at one or finds no better point without a NaN.
    """
    started = time.perf_counter()
    integer("steps", steps, at_least=1)
    integer("callback_every", callback_every, at_least=1)
    if checkpoint_every is not None:
        integer("checkpoint_every", checkpoint_every, at_least=1)
    if max_seconds is not None:
        number("max_seconds", max_seconds, above=0)
    integer("seed", seed, at_least=0)
    for name, value in {"resume": resume, "progress": progress, "jit_compile": jit_compile}.items():
        boolean(name, value)
    if checkpoint_dir is None and (checkpoint_every is not None or resume):
        raise ValueError(
            f"checkpoint_dir: found None with checkpoint_every={checkpoint_every} and "
            f"resume={resume}; pass the directory for the checkpoints."
        )
    if checkpoint_dir is not None and checkpoint_every is None:
        checkpoint_every = _DEFAULT_CHECKPOINT_EVERY
    method = resolve_method(
        method,
        minibatches=batch_size is not None or isinstance(data, tf.data.Dataset),
        batch_size=batch_size,
        gradient_arguments={
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "natural_gradient": natural_gradient,
        },
        options=options,
    )
    if strategy is not None and method == "l-bfgs":
        raise ValueError(
            "strategy: L-BFGS runs on one device, found a "
            f"{type(strategy).__name__}; pass method='adam', or leave strategy out."
        )
    if strategy is not None and jit_compile:
        raise ValueError(
            "jit_compile: XLA cannot compile a step that is spread over replicas; leave it out "
            "with a strategy."
        )
    replicas = Replicas(strategy)
    replicas.check_model(model)
    full_batch = method == "l-bfgs"
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
    if method == "l-bfgs":
        updates = lbfgs_updates(model)
        settings = {"options": dict(options or {}), "checkpoint_every": checkpoint_every}
    else:
        with replicas.scope():
            updates = gradient_updates(
                model,
                optimizer=optimizer,
                learning_rate=learning_rate,
                natural_gradient=natural_gradient,
            )
        replicas.check_optimizer(updates.optimizer)
        settings = updates.describe()
    store = CheckpointStore(
        checkpoint_dir,
        objects={"model": model, **updates.stored(), **batches.state()},
        configuration={
            "method": method,
            "parameters": _describe_parameters(model),
            "data": batches.describe(),
            "jit_compile": jit_compile,
            **settings,
        },
        writes=replicas.workers.is_chief,
    )
    with (
        replicas.started(store, resume) as first_step,
        Recorder(
            model,
            first_step=first_step,
            steps=steps,
            exact=batches.exact,
            callbacks=callbacks,
            callback_every=callback_every,
            progress=progress and replicas.workers.is_chief,
        ) as recorder,
    ):
        step, ending = first_step, _ended_before(store, first_step, steps)
        endings = Endings(
            recorder,
            replicas.workers,
            started=started,
            steps=steps,
            max_seconds=max_seconds,
            every=callback_every,
        )
        if ending is not None:
            recorder.evaluate(first_step, last=True)
        elif method == "l-bfgs":
            step, ending = run_lbfgs(
                model,
                batches.batch(0),
                updates.variables,
                options=options or {},
                first_step=first_step,
                steps=steps,
                checkpoint_every=checkpoint_every,
                store=store,
                recorder=recorder,
                endings=endings,
                jit_compile=jit_compile,
            )
        else:
            step, ending = run_gradient_steps(
                model,
                batches,
                replicas=replicas,
                updates=updates,
                first_step=first_step,
                checkpoint_every=checkpoint_every,
                store=store,
                recorder=recorder,
                endings=endings,
                jit_compile=jit_compile,
            )
    seen = arrays or batches.first
    if seen is not None:
        warn_of_left_variance(model, seen[0])
    return FitResult(
        steps=step,
        first_step=first_step,
        elbos=recorder.elbos,
        elbo=recorder.running_elbo,
        metrics=tuple(recorder.metrics),
        seconds=time.perf_counter() - started,
        reason=ending.reason,
        message=ending.message,
        checkpoint=store.latest,
    )


def _ended_before(store: CheckpointStore, first_step: int, steps: int) -> Ending | None:
    """How the fit of a checkpoint had ended, if there is nothing left to do."""
    message = "the checkpoint is of a fit that had ended"
    if store.converged:
        return Ending("converged", message)
    if store.stopped:
        return Ending("stalled", message)
    return Ending("steps", message) if first_step >= steps else None


def _describe_parameters(model: gpflow.models.BayesianModel) -> dict[str, str]:
    return {
        path: f"{parameter.dtype.name} {list(parameter.shape)}"
        + ("" if parameter.trainable else ", not trainable")
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
    }
