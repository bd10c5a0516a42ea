"""``fit``: trains any model, by the method that suits it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow

from ._arguments import integer, number, warn
from .training.data_checks import Data
from .training.gradient_steps import Optimizer
from .training.results import Callback, FitResult, as_callbacks
from .training.run import HAD_ENDED, Plan
from .training.trainer import trainer_of


def fit(
    model: gpflow.models.BayesianModel,
    data: Data = None,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    optimizer: Optimizer = None,
    num_inducing: int | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    checkpoint_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
    options: Mapping[str, Any] | None = None,
) -> FitResult:
    """Train a GPflow model, by the method that suits it::

        fit(model, (X, Y))  # L-BFGS on all of the data
        fit(model, (X, Y), batch_size=256)  # Adam, and natural gradients for q
        fit(model, (X, Y), batch_size=256, optimizer=NaturalGradient(0.1))  # of this step size
        fit(model, (X, Y), batch_size=256, optimizer=(None, 0.01))  # Adam for everything
        fit(structured_sgpr)  # one pass over its rows
        fit(dual_svgp, num_inducing=500)  # a few passes, with features that the data choose

    Every trainable parameter is trained, and the objective to be maximised is
    ``-model.training_loss``: the ELBO (or log marginal likelihood) plus the log density of priors.
    Compiled functions are kept with the model and reused by its next fit, as long as the model's
    structure, its ``trainable`` flags and the columns of the data are the same.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> model = gpflow.models.GPR((X, np.sin(5 * X)), gpflow.kernels.Matern52(), noise_variance=0.1)
    >>> fitted = idm.fit(model, progress=False)
    >>> print(fitted.elbo > 100, model.likelihood.variance.numpy() < 0.001)
    True True

    **Minibatches** (a ``batch_size``, a Dataset or an ``optimizer``) are for any model with a q.
    Natural gradients update q, and Adam everything else, both from one gradient. q is given by the
    pairs in ``model.variational_parameters``, or by (``model.q_mu``, ``model.q_sqrt``), with a full
    or a diagonal q_sqrt. By default the step size for a full q rises from 0.001 to 0.1 in 20 steps,
    and that for a diagonal q falls as ``0.1 / (1 + step / 300)``. Steps that overshoot, or leave
    the positive-definite covariances, are shortened. Several pairs are updated at once, each as if
    the others were fixed: if n full q's explain the same data (a base and its orthogonal variables,
    or the blocks of a sum), choose ``1 / n`` of the size that suits a single q.

    **A** :class:`~interdomain.models.StructuredSGPR` is trained with one pass over its rows:

    1. If features depend on trainable parameters, all parameters are trained by L-BFGS on a
       random subset. Those that the features depend on, ``model.feature_parameters`` (input scales
       of harmonics), are then marked not trainable, and stay so.
    2. One pass over all rows computes the statistics.
    3. The other parameters are trained by L-BFGS on the statistics. This is exact for all rows, at
       O(M^3) a step.

    With features that depend on every parameter of the kernel, such as points, only the noise
    variance and the mean function are left for step 3. ``options={"subset_size": None}`` trains
    everything on all rows, if these are in memory.

    **A** :class:`~interdomain.models.DualSVGP` is trained in a few passes, which are its steps:

    1. If there are many more rows than in the subset, or features depend on trainable parameters,
       steps 2 to 5 are done first on a random subset. Parameters of features are trained there too,
       in turns with q, and are marked not trainable.
    2. If the level of f that suits the rows is more than a prior deviation away from the prior
       mean, the first sites (Gaussian factors that stand for the likelihood of each row) come from
       the data: each row has a q of its own, around this level. Otherwise q is a narrow prior.
    3. A pass over all rows computes the bound at the present q, and the sites that are tangent to
       the likelihood there.
    4. A natural-gradient step of size one: the new q is made of the prior and these sites. The
       weights of a constant or linear mean function go with q. If q is not a Gaussian, or the next
       pass finds a lower bound, the step is halved.
    5. The parameters of the kernel are trained by L-BFGS on the sums over the sites, without data,
       and those of the likelihood take one Newton step.

    The optimum is that of ``gpflow.models.SVGP``; log-concave likelihoods take five to ten passes.

    **A** :class:`~interdomain.models.VecchiaSGPR` is trained in turns, which are its steps, after
    its features were trained as those of a StructuredSGPR:

    1. Lengthscales, variance and noise start from the data: L-BFGS takes a few steps from several
       starts, on the densities of random rows given their neighbours, and the best start is kept.
       Given values are one of the starts, unless all lengthscales are 1, GPflow's default.
    2. If no local kernel was given, Matern12, Matern32, Matern52 and
       :class:`~interdomain.kernels.TwoScales` are trained in this way. The kernel of the highest
       density of other rows is kept: given their nearest of all rows, of an eighth and of a 64th of
       them. ``FitResult.local_kernels`` says what was compared.
    3. In a turn, L-BFGS trains the local kernel and the noise, and neighbours are searched again.
       Nearby rows are merged, as the model's ``merge`` says; if any are, these parameters are
       trained once more. A pass whitens all rows, and the mean function and the parameters of the
       features' kernel are trained on the sums.
    4. Under Student-t noise a turn ends with passes that weigh the rows and train its scale and its
       degrees of freedom.
    5. Turns end when the log evidence rises by less than 0.001 a row. Without features and with
       Gaussian noise one turn is all, unless a mean function is trained.
    6. The last step fits intervals to the errors of predictions. Random rows are predicted from
       their nearest other rows, as many as predictions have. Variance and noise are multiplied by
       one factor, so that means stay; under Student-t noise L-BFGS trains both.

    Neighbours alone are tried, too. What has the highest evidence, less log(N) / 2 nats for each
    number that its kernels have, is kept, and ``FitResult.parts`` says which part explains what.
    The other part stays in the model, which does not use it (``model.parts``), and a second fit
    tries all parts again, with the kernel that was chosen.

    **With** ``num_inducing`` the data choose the features of these two models, among harmonics or
    waves of a box. Give the model a few to start with, such as all harmonics of degrees 0 to 2.
    Matching pursuit chooses a few on the subset, and all parameters are trained with them; the
    final features are then chosen with these input scales, on up to 20,000 rows. If the log
    density of held-out rows has shown that there are too few rows to choose by, the features of
    largest prior variance are taken. ``FitResult.choice`` says what was done, and
    ``model.inducing_variable`` holds the features.

    **Several devices and workers.** A model that was built in the scope of a ``MirroredStrategy``
    or ``MultiWorkerMirroredStrategy`` is trained under it, by minibatches whose rows are spread
    over the replicas. All workers must be given the same data, and see the same ``checkpoint_dir``.

    **Resuming.** A fit by minibatches that is stopped and run again with the same arguments arrives
    at the same parameters as an uninterrupted fit, to the last bit, on the same machine with the
    same number of threads; not if the loss draws random numbers (Monte Carlo likelihoods), a
    Dataset is shuffled without a seed, or operations of a GPU are not deterministic. L-BFGS goes on
    without its memory of the curvature, and arrives at the same optimum by another way. Chosen
    features are not kept: they are chosen again, the same.

    :param model: a model that is given its data (such as SVGP) or holds them (GPR, SGPR, ...).
    :param data: (X ``[N, D]``, Y ``[N, P]``), or a ``tf.data.Dataset`` of such batches; None for a
        model that holds its data. X is converted to ``gpflow.default_float()``, Y to what the
        likelihood takes, a minibatch at a time, so that memory-mapped arrays stay in their files.
        NaN in Y is for a likelihood of your own that leaves out what is missing, and has an
        attribute ``allow_nan = True``. A Dataset is used as given: batch it, and shuffle it with a
        seed. One that ends starts again.
    :param steps: the number of updates, or the largest number of L-BFGS iterations, 1000 by
        default, of passes of a DualSVGP, 20 by default, or of turns of a VecchiaSGPR, 8; counted
        from the first run: a fit that is resumed at step 400 does 600 more.
    :param batch_size: the number of rows of a minibatch, drawn without replacement from arrays, in
        an order that depends on the seed and the epoch alone; the ``N % batch_size`` last of it are
        skipped. None for all rows at every step.
    :param optimizer: the learning rate of Adam, 0.01 by default; an instance of a tf_keras or Keras
        3 optimizer, which updates everything; ``gpflow.optimizers.NaturalGradient(size)``, which
        updates q beside Adam, whose size in (0, 1] may also be a function (or a schedule of
        tf_keras) of the number of previous steps; or a pair of such a NaturalGradient, or None, and
        what updates everything else. With a rate alone, natural gradients are used if q is
        trainable and each column of Y has one latent GP (not the classes of ``Softmax``).
    :param num_inducing: the largest number M of features to choose; None keeps those of the model.
    :param callbacks: a function, or a list of functions: called as ``callback(step, model)`` every
        ``every`` steps and at the end. If a callback returns a mapping from names to numbers, it is
        shown on the progress bar and kept in the result. If it raises
        :class:`~interdomain.training.StopFit`, the fit ends after this step, on all workers of a
        strategy. A callback should not change the model.
    :param checkpoint_dir: a folder for checkpoints, which are written at the start, every ``every``
        steps and at the end; the last three are kept. If it holds some of this fit already, the fit
        resumes from the newest that can be read. Checkpoints of other rows, or of a model with
        another kernel, likelihood, mean function or features, are refused. A checkpoint is written
        only where the loss is finite, and
        ``tf.train.Checkpoint(model=model).restore(result.checkpoint)`` reads it anywhere. A
        VecchiaSGPR refuses a folder: each turn ends with samples, searches and sums that a
        checkpoint does not hold. A second fit goes on from the present parameters, and the fitted
        model can be saved.
    :param progress: show a progress bar with the running ELBO on the standard error stream.
    :param options: what is rarely changed, by name:

        ``every``: the number of steps between two calls of the callbacks, and two checkpoints; 100
        by default, 1 for a DualSVGP or a VecchiaSGPR.

        ``max_seconds``: end after the step during which this number of seconds has passed since the
        call, compilation included; several workers look only every ``every`` steps.

        ``seed``: the seed of the order of minibatches, or of the rows of the subset; 0 by default.
        L-BFGS on all rows draws nothing.

        ``subset_size``: the rows of the subset, drawn without replacement; 5,000 by default, 3,000
        for a DualSVGP. None for no subset of a StructuredSGPR.

        ``subset_steps``: the largest number of L-BFGS iterations on the subset; 50 by default, 25
        for a DualSVGP.

        ``parts``: of a VecchiaSGPR, "features", "neighbours" or "both", if only this is tried.

        ``predict_at``: of a VecchiaSGPR, the rows ``[n, D]`` at which it will predict. Kernels are
        then compared, and intervals fitted, on rows that are as far from their neighbours as these
        rows are from X.

        ``tolerance``: of a DualSVGP, in nats of the bound over all rows; by default a millionth for
        each row, and at least 0.01.

        ``ftol``, ``gtol``, ``maxcor``, ``maxfun``, ``maxls``: of SciPy's L-BFGS-B.
    :warns UserWarning: before training, if a column of X, or Y under a Gaussian likelihood, is far
        from the scale that the model assumes (1,000 times, or 100 ranges or standard deviations
        away); of a Dataset, the first batch is looked at. If most of the nearest rows of a row of a
        VecchiaSGPR are at its own place, or its degrees look like radians. If the checkpoint is of
        a fit that had ended. If a DualSVGP has not converged after its steps (two or more), or has
        stalled.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. That includes a model whose ``num_data``
        is None with minibatches, or is not the number of rows, because its ELBO would be scaled
        wrongly; and a ``checkpoint_dir`` of another fit, or without one that can be read.
    :raises OSError: when a checkpoint cannot be written; the last good one is unchanged.
    :raises tf.errors.OpError: when another worker of the strategy ends or cannot be reached.
        TensorFlow's error names it; start all workers again.
    :raises NonFiniteError: when the loss, a gradient or an updated parameter is NaN or infinite;
        the error says which parameters the model has then. Such a point in a line search of L-BFGS
        is rejected, and a nearer one is tried (``FitResult.message`` counts them): the error is
        raised only if L-BFGS starts at such a point, or finds no better point without a NaN.
    """
    started, left = time.perf_counter(), dict(options or {})
    trainer = trainer_of(model, optimizer)
    trainer.check_data(data, batch_size)
    size, on_subset = trainer.subset_size, trainer.subset_steps
    if size is not None:
        size, on_subset = left.pop("subset_size", size), left.pop("subset_steps", on_subset)
    if size is not None:
        integer("subset_size", size, at_least=1)
    plan = Plan(
        started,
        integer("steps", trainer.steps if steps is None else steps, at_least=1),
        progress=progress,
        callbacks=as_callbacks(callbacks),
        every=integer("every", left.pop("every", trainer.every), at_least=1),
        max_seconds=left.pop("max_seconds", None),
        checkpoint_dir=checkpoint_dir,
        seed=integer("seed", left.pop("seed", 0), at_least=0),
        num_inducing=num_inducing,
        subset_size=size,
        subset_steps=integer("subset_steps", on_subset, at_least=1),
    )
    if plan.max_seconds is not None:
        number("max_seconds", plan.max_seconds, above=0)
    if num_inducing is not None:
        integer("num_inducing", num_inducing, at_least=1)
        if not trainer.chooses_features:
            raise ValueError(
                f"num_inducing: the data choose the features of a StructuredSGPR or a DualSVGP, "
                f"found a {type(model).__name__}; leave num_inducing out."
            )
    result = trainer.fit(plan, left)
    if result.message == HAD_ENDED:
        warn(
            f"checkpoint_dir: {result.checkpoint} is of a fit that had ended, and nothing was "
            "trained; pass more steps, or another folder."
        )
    return result
