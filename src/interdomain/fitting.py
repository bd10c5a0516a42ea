"""The function ``fit``, which trains any GPflow model by a method that depends on the model."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gpflow

from ._arguments import integer, number, warn
from ._progress import bars
from .training.data_checks import Data
from .training.gradient_steps import Optimizer
from .training.results import Callback, FitResult, as_callbacks
from .training.run import HAD_ENDED, Plan
from .training.scales import warn_of_margins
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
    """Train a GPflow model, by the method that suits the model::

        fit(model, (X, Y))  # L-BFGS on all of the data
        fit(model, (X, Y), batch_size=256)  # Adam, and natural gradients for q
        fit(model, (X, Y), batch_size=256, optimizer=NaturalGradient(0.1))  # with this step size
        fit(model, (X, Y), batch_size=256, optimizer=(None, 0.01))  # Adam for everything
        fit(structured_sgpr)  # one pass over its rows
        fit(dual_svgp, num_inducing=500)  # a few passes, with features that the data choose

    All trainable parameters are trained. The objective, which is maximised, is
    ``-model.training_loss``: the ELBO (or log marginal likelihood) plus the log density of priors.
    The model keeps the compiled functions. Its next fit reuses them if the model's structure, its
    ``trainable`` flags and the columns of the data are unchanged.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> model = gpflow.models.GPR((X, np.sin(5 * X)), gpflow.kernels.Matern52(), noise_variance=0.1)
    >>> fitted = idm.fit(model, progress=False)
    >>> print(fitted.elbo > 100, model.likelihood.variance.numpy() < 0.001)
    True True

    **Minibatches** (a ``batch_size``, a Dataset or an ``optimizer``) work for any model with a q.
    Natural gradients update q, and Adam updates all other parameters, both from one gradient. The
    pairs in ``model.variational_parameters``, or (``model.q_mu``, ``model.q_sqrt``), define q;
    q_sqrt is full or diagonal. By default the step size for a full q rises from 0.001 to 0.1 in 20
    steps. The step size for a diagonal q falls as ``0.1 / (1 + step / 300)``. A step is shortened
    if it overshoots or its covariance is not positive definite. If a model has n pairs, all are
    updated at once, each as if the other pairs were fixed. Steps above about ``1 / n`` overshoot if
    the q's explain the same data (blocks of a sum, or a base and its orthogonal variables). Default
    sizes are at most ``1 / n``; choose yours so, too.

    **StructuredSGPR**: a :class:`~interdomain.models.StructuredSGPR` needs one pass over its rows:

    1. If features depend on trainable parameters, L-BFGS trains all parameters on a random subset.
       The parameters of the features, ``model.feature_parameters`` (input scales of harmonics), are
       then marked not trainable, and stay so.
    2. One pass over all rows computes the statistics.
    3. L-BFGS trains the other parameters on the statistics. This is exact for all rows, at a cost
       of O(M^3) per step.

    If features depend on every parameter of the kernel, as inducing points do, step 3 trains only
    the noise variance and the mean function. ``options={"subset_size": None}`` trains everything on
    all rows, if the rows are in memory.

    **DualSVGP**: a :class:`~interdomain.models.DualSVGP` is trained in a few passes over the rows,
    which ``steps`` counts:

    1. If features depend on trainable parameters, or the rows exceed four times the subset, steps 2
       to 5 run first on a random subset. Parameters of features are trained there, in turns with q,
       and are then marked not trainable.
    2. The first q is computed. If the best constant level of f is within one prior standard
       deviation of the prior mean, it is the prior with a narrow covariance. Otherwise it follows
       from first sites near this level. A site is a Gaussian factor for a row's likelihood.
    3. A pass over all rows computes the bound at the present q, and the sites that are tangent to
       the likelihood there.
    4. A natural-gradient step of size one computes the new q from the prior and the sites. The
       weights of a constant or linear mean function are updated with q. If the new q is not a
       Gaussian, negative precisions of sites become zero. If the bound falls, the step is halved.
    5. L-BFGS trains the kernel's parameters on the sums over the sites, without data. The
       parameters of the likelihood take one Newton step.

    The optimum is that of ``gpflow.models.SVGP``; log-concave likelihoods take five to ten passes.

    **VecchiaSGPR**: a :class:`~interdomain.models.VecchiaSGPR` is trained in turns, which ``steps``
    counts. The features alone are trained first, in a StructuredSGPR:

    1. Lengthscales, variance and noise start from the data. L-BFGS takes a few steps from several
       starts, on the densities of random rows given their neighbours. Training resumes from the
       best. Values of a given kernel are a start, too, unless all its lengthscales are 1.
    2. If no local kernel was given, Matern12, Matern32, Matern52 and
       :class:`~interdomain.kernels.TwoScales` are trained in this way. The kernel with the highest
       density of a second sample of rows is used. Densities are averaged over neighbours from all
       rows, an eighth and a 64th of the rows. ``FitResult.local_kernels`` has the comparison.
    3. In a turn, L-BFGS trains the local kernel and the noise, and neighbours are searched again.
       In the first turn L-BFGS begins again at all starts. The result is used if it raises the mean
       log density of a row by more than 0.05 nats.
       Nearby rows are merged, as the model's ``merge`` says; if any are merged, these parameters
       are trained again. A pass whitens all rows. The mean function and the parameters of the
       features' kernel are trained on the sums.
    4. Under Student-t noise a turn ends with passes that weigh the rows, and that train the scale
       and the degrees of freedom.
    5. Turns end when the log evidence rises by less than 0.001 a row. Without features and with
       Gaussian noise there is only one turn, unless a mean function is trained.
    6. After the turns, intervals are fitted to prediction errors. Random rows are predicted from
       as many nearest other rows as predictions use. One factor multiplies variance and noise, so
       that means do not change; under Student-t noise L-BFGS trains both.

    Features alone, neighbours alone and both are tried. The log evidence of each is reduced by
    log(N) / 2 nats for each number in its kernels; the highest decides which parts are used
    (``model.parts``). ``FitResult.parts`` says what each part explains. Unused parts stay in the
    model. A second fit tries all parts again, with the chosen kernel.

    **num_inducing**: the data choose the features of a StructuredSGPR, DualSVGP or VecchiaSGPR,
    among harmonics or waves of a box. Give the model a few features to start with, such as all
    harmonics of degrees 0 to 2. Matching pursuit chooses a few features on the subset, and all
    parameters are trained with them. The final features are then chosen with these input scales, on
    up to 20,000 rows. If the log density of held-out rows shows that the rows are too few for this
    choice, the features of largest prior variance are used. ``FitResult.choice`` describes the
    choice, and ``model.inducing_variable`` holds the features.

    **Several devices and workers.** Build the model in the scope of a ``MirroredStrategy`` or
    ``MultiWorkerMirroredStrategy``. It is then trained by minibatches whose rows are spread over
    the replicas. All workers must be given the same data, and see the same ``checkpoint_dir``.

    **Resuming.** Call ``fit`` again with the same arguments to resume a fit by minibatches. Its
    parameters then equal those of an uninterrupted fit to the last bit, on the same machine with
    the same number of threads. Exceptions are losses that draw random numbers (as Monte Carlo
    likelihoods do), Datasets shuffled without a seed, and nondeterministic GPU operations. L-BFGS
    resumes without its memory of the curvature, and reaches the same optimum by another path.
    Chosen features are not stored: the same features are chosen again.

    :param model: A model that is given its data (such as SVGP) or holds them (GPR, SGPR, ...).
    :param data: (X ``[N, D]``, Y ``[N, P]``), or a ``tf.data.Dataset`` of such batches; None for a
        model that holds its data. Each minibatch is converted separately, so that memory-mapped
        arrays stay in their files: X to ``gpflow.default_float()``, Y to the likelihood's type. NaN
        in Y is allowed only for your own likelihood, if it leaves out missing values and has an
        attribute ``allow_nan = True``. A Dataset is used as given: batch it, and shuffle it with a
        seed. A Dataset that ends starts again.
    :param steps: The number of updates, or the largest number of L-BFGS iterations; 1000 by
        default. For a DualSVGP the number of passes (20), for a VecchiaSGPR of turns (8). Steps are
        counted from the first run: a fit that is resumed at step 400 does 600 more.
    :param batch_size: The number of rows of a minibatch; None for all rows at every step. Rows are
        drawn without replacement from arrays, in an order that depends only on the seed and the
        epoch. The last ``N % batch_size`` rows of the order are skipped.
    :param optimizer: The learning rate of Adam, 0.01 by default; an instance of a tf_keras or Keras
        3 optimizer, which updates everything; or ``gpflow.optimizers.NaturalGradient(size)``, which
        updates q, while Adam updates the rest. The size in (0, 1] may also be a function (or a
        tf_keras schedule) of the number of previous steps. A pair gives the NaturalGradient, or
        None, and the optimizer of everything else. A rate alone implies natural gradients if q is
        trainable and each column of Y has one latent GP (``Softmax`` has several).
    :param num_inducing: The largest number M of features to choose; None keeps the given features.
    :param callbacks: A function, or a list of functions: called as ``callback(step, model)`` every
        ``every`` steps and at the end. If a callback returns a mapping from names to numbers, it is
        shown on the progress bar and kept in the result. If it raises
        :class:`~interdomain.training.StopFit`, the fit ends after this step, on all workers of a
        strategy. A callback should not change the model.
    :param checkpoint_dir: a folder for checkpoints, which are written at the start, every ``every``
        steps and at the end; the last three stay in the folder. If it holds checkpoints of this
        fit, the fit resumes from the newest readable checkpoint. Checkpoints of other rows, or of a
        model with another kernel, likelihood, mean function or features, raise an error. A
        checkpoint is written only if the loss is finite;
        ``tf.train.Checkpoint(model=model).restore(result.checkpoint)`` reads it anywhere. The fit
        of a VecchiaSGPR cannot be resumed, so it accepts no folder; save the fitted model with
        ``tf.train.Checkpoint(model=model).write(path)``.
    :param progress: show a progress bar with the running ELBO on the standard error stream. False
        hides the bars of passes over the rows, too.
    :param options: rarely changed settings, by name:

        ``every``: the number of steps between two calls of the callbacks, and two checkpoints; 100
        by default, 1 for a DualSVGP or a VecchiaSGPR.

        ``max_seconds``: end after the step during which this number of seconds has passed since the
        call, compilation included; several workers check the time only every ``every`` steps. The
        training on a subset, and the choice of features, always finish. Their time counts, and at
        least one step on all rows follows.

        ``seed``: the seed of the order of minibatches, or of the rows of the subset; 0 by default.
        L-BFGS on all rows draws no random numbers.

        ``subset_size``: the rows of the subset, drawn without replacement; 5,000 by default, 3,000
        for a DualSVGP. None trains a StructuredSGPR without a subset.

        ``subset_steps``: the largest number of L-BFGS iterations on the subset; 50 by default, 25
        for a DualSVGP.

        ``parts``: for a VecchiaSGPR, "features", "neighbours" or "both": the only parts to try.

        ``predict_at``: for a VecchiaSGPR, the rows ``[n, D]`` at which it will predict. Kernels are
        then compared, and intervals fitted, on rows that are as far from their neighbours as these
        rows are from X.

        ``tolerance``: for a DualSVGP, the gain of the bound over all rows, in nats, at which a fit
        has converged; by default a millionth of a nat for each row, and at least 0.01.

        ``ftol``, ``gtol``, ``maxcor``, ``maxfun``, ``maxls``: options of SciPy's L-BFGS-B.
    :warns UserWarning: before training, if a column of X, or Y under a Gaussian likelihood, is far
        from the scale that the model assumes: a factor of 1,000 or more from the lengthscale, or
        from the prior standard deviation of Y. For a Dataset, only the first batch is checked. For
        a VecchiaSGPR, if over a third of the nearest rows of a row are at its own place, or degrees
        look like radians. If the checkpoint is of a finished fit. After training, if a DualSVGP has
        not converged after its steps (two or more), or has stalled; or if a lengthscale has become
        too long for the margin of a Periodized.from_data.
    :raises ValueError: for arguments that are wrong or do not go together: the message names the
        argument, what was found, and what to pass instead. Also for minibatches if ``num_data`` of
        the model is None or differs from the number of rows, because the ELBO would be scaled
        wrongly; and if ``checkpoint_dir`` is of another fit or has no readable checkpoint.
    :raises OSError: When a checkpoint cannot be written; the last good one is unchanged.
    :raises tf.errors.OpError: When another worker of the strategy ends or cannot be reached.
        TensorFlow's error names it; start all workers again.
    :raises NonFiniteError: When the loss, a gradient or an updated parameter is NaN or infinite;
        the error says which parameters the model then has. A line search of L-BFGS rejects such a
        point and tries a nearer one (``FitResult.message`` counts the rejections). L-BFGS raises
        the error only if it starts at such a point, or finds no better point without a NaN.
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
                f"num_inducing: the data choose the features of a StructuredSGPR, DualSVGP or "
                f"VecchiaSGPR, found a {type(model).__name__}; leave num_inducing out."
            )
    with bars(shown=progress):  # of the model's passes, too
        result = trainer.fit(plan, left)
    if isinstance(kernel := getattr(model, "kernel", None), gpflow.kernels.Kernel):
        warn_of_margins(kernel)
    if result.message == HAD_ENDED:
        warn(
            f"checkpoint_dir: {result.checkpoint} is of a fit that had ended, and nothing was "
            "trained; pass more steps, or another folder."
        )
    return result
