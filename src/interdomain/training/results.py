"""The result of a fit, how callbacks end one, and the error for numbers that are not finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from gpflow.base import AnyNDArray

from .._arguments import instance, items
from ..choosing import Choice

Callback = Callable[[int, Any], Mapping[str, float] | None]

EndReason: TypeAlias = Literal["steps", "converged", "stalled", "max_seconds", "callback"]


def as_callbacks(callbacks: Callback | Sequence[Callback]) -> tuple[Callback, ...]:
    """The callbacks as a tuple; a ValueError unless the argument is a function or several."""
    rule = "a function callback(step, model), or a list of such functions"
    listed = [callbacks] if callable(callbacks) else items("callbacks", callbacks, rule)
    for number, callback in enumerate(listed):
        instance(f"callbacks[{number}]", callback, Callable, "a function callback(step, model)")
    return tuple(listed)


class StopFit(Exception):
    """An exception that a callback raises to end the fit after the present step.

    The remaining callbacks of this step are still called, and ``FitResult.reason`` is "callback".

    :param reason: why the fit ends, for ``FitResult.message``.
    :param metrics: numbers by name, as a callback returns them.
    """

    def __init__(self, reason: str = "no reason given", metrics: Mapping[str, float] | None = None):
        super().__init__(reason)
        self.metrics = metrics


class Ending(NamedTuple):
    """The end of a fit, as in :class:`FitResult`."""

    reason: EndReason
    message: str


@dataclass(frozen=True)
class Parts:
    """The comparison of parts of a :class:`interdomain.models.VecchiaSGPR`, and their shares.

    :ivar evidence: the log marginal likelihood a row, of "features", "neighbours" and "both",
        before intervals are fitted to the errors of predictions.
    :ivar kept: the name of the parts that the fitted model uses.
    :ivar shares: the shares of the mean square of Y minus its mean function, on a sample of rows,
        in the final model. "features" is the share that the features explain. "neighbours" is the
        share that neighbours among the previous rows explain in addition. "noise" is the noise
        variance of the model, and "unexplained" is the remaining share.
    """

    evidence: Mapping[str, float]
    kept: str
    shares: Mapping[str, float]

    def __str__(self) -> str:
        tried = ", ".join(f"{name} {value:.4f}" for name, value in self.evidence.items())
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.shares.items())
        left = f"of the mean square of Y less its mean function: {shares}"
        return f"log evidence a row: {tried}; kept: {self.kept}\n{left}"


@dataclass(frozen=True)
class LocalKernels:
    """The comparison of local kernels of a :class:`interdomain.models.VecchiaSGPR`.

    :ivar densities: the mean log density of a second sample of rows, given their neighbours, by
        kernel, for Y in standard deviations: the mean over the thinnings.
    :ivar kept: the kernel of the highest density, which the model uses.
    :ivar thinnings: 8 means that the neighbours of a row are chosen from an eighth of the rows. 0
        means neighbours as far from a row as the rows ``predict_at`` are from the model's rows.
    """

    densities: Mapping[str, float]
    kept: str
    thinnings: tuple[int, ...]

    def __str__(self) -> str:
        compared = ", ".join(f"{name} {value:.4f}" for name, value in self.densities.items())
        return f"log density of other rows: {compared}; kept: {self.kept}"


@dataclass(frozen=True, eq=False)
class FitResult:
    """The result of :func:`interdomain.fit`.

    The steps of a :class:`~interdomain.models.DualSVGP` are passes over the data. ``elbos`` has the
    bound of each pass, and ``elbo`` the bound of the present model: a step that lowered the bound
    was undone. "converged" means that a step of full size raised the bound by less than the
    tolerance, and "stalled" that no step, however short, raised it. For "stalled" and "steps" there
    is a warning. The steps of a :class:`~interdomain.models.VecchiaSGPR` are turns.

    :ivar steps: the step of the present model, counted from the first run.
    :ivar first_step: the step this call started from (0 unless it resumed a checkpoint).
    :ivar elbos: shape ``[steps - first_step]``, one objective (``-model.training_loss``) per step
        of this call. A minibatch step records the estimate from its batch at the parameters before
        its update; an L-BFGS iteration records the exact value after its update.
    :ivar elbo: the last ELBO of the progress bar: a moving average of ``elbos`` for minibatches,
        the last value for full batches. In a call without a step to do, it is the objective at the
        model's parameters; with minibatches, an estimate from one batch.
    :ivar metrics: one mapping per evaluation by the callbacks, with the key ``"step"`` and the
        numbers that the callbacks returned.
    :ivar seconds: wall-clock seconds of this call, compilation and callbacks included.
    :ivar reason: why the fit ended: "steps", after all steps; "converged", if a tolerance was met
        or no parameter was left to train; "stalled", if no better point was found; "max_seconds";
        or "callback", if it raised :class:`StopFit`. After the last two, the next call resumes.
    :ivar message: the reason in words.
    :ivar checkpoint: the path of the last checkpoint; None without a ``checkpoint_dir``. Restore it
        by ``tf.train.Checkpoint(model=model).restore(path)``.
    :ivar frozen: the names of the feature parameters that were trained on a subset and are no
        longer trainable.
    :ivar choice: how features were chosen (``print(result.choice)``); None without
        ``num_inducing``.
    :ivar parts: the shares of features and neighbours of a VecchiaSGPR (``print(result.parts)``);
        None for other models.
    :ivar local_kernels: the comparison of local kernels of a VecchiaSGPR (``print``); None if the
        kernel was given.
    :ivar subset: the fit of a StructuredSGPR on a subset; None without one, or if features were
        chosen.
    :ivar subset_seconds: the seconds for everything on the subset: drawing, fits, choosing.
    :ivar pass_seconds: the seconds for all passes over all rows.
    """

    steps: int
    first_step: int
    elbos: AnyNDArray = field(repr=False)
    elbo: float
    metrics: tuple[Mapping[str, float], ...]
    seconds: float
    reason: EndReason
    message: str
    checkpoint: str | None
    frozen: tuple[str, ...] = ()
    choice: Choice | None = None
    parts: Parts | None = None
    local_kernels: LocalKernels | None = None
    subset: FitResult | None = None
    subset_seconds: float = 0.0
    pass_seconds: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether :attr:`reason` is "converged"; False for minibatches, which have no tolerance."""
        return self.reason == "converged"


@dataclass(eq=False, repr=False)
class NonFiniteError(FloatingPointError):
    """The error of a fit whose loss, gradient or updated parameter was NaN or infinite.

    When the error is raised, the model has parameters with a finite loss: after the last iteration
    of L-BFGS, or, with minibatches, after the last multiple of ``every`` steps. No checkpoint is of
    a later step. The state of an optimizer that the caller passed is not restored.

    :ivar reason: what was not finite.
    :ivar step: the step that failed, counted from the first run.
    :ivar kept_step: the step whose update led to the present parameters of the model.
    :ivar checkpoint: the path of the last good checkpoint, or None without a ``checkpoint_dir``.
    """

    reason: str
    step: int
    kept_step: int
    checkpoint: str | None

    def __str__(self) -> str:
        kept = f"the last good checkpoint is {self.checkpoint}"
        if self.checkpoint is None:
            kept = "there is no checkpoint (pass checkpoint_dir to keep some)"
        return (
            f"step {self.step}: {self.reason}. The model is back at the parameters after step "
            f"{self.kept_step}, which had a finite loss; {kept}. Usual "
            "causes: a step of Adam or a natural gradient that is too large, inputs that are not "
            "standardised, nearly equal inducing inputs (raise gpflow's jitter), float32, a "
            "likelihood whose log density is not finite for some Y."
        )
