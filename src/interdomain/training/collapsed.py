"""Training of a :class:`interdomain.models.CollapsedSVGP`: passes, and steps without data."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from .._arguments import boolean, integer, number
from ..models import CollapsedSVGP
from ..models.collapsed_svgp import PassResult
from ..models.site_evidence import TiltedEvidence
from ..models.sites import Sites
from ..sphere._typing import Array
from .collapsed_checkpoints import PassCheckpoint, PassState
from .pursuit import fit_quietly
from .results import NonFiniteError
from .site_subset import begin_on_subset
from .trust_region import limited

CollapsedReason: TypeAlias = Literal["converged", "passes", "max_seconds", "stalled"]

_LEAST_SHARE = 2.0**-6
"""Of the way to the tangent sites: steps that are shorter than this end the fit."""

_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Of negative precisions, tried in turn near the optimum. Far from it they are left out, which is
safer, and as good."""

_BEGINNING = 0.01
"""Of the prior's variance that q has in the first pass."""

_SETTLED = 0.1
"""Of the bound: while it rises by more, sites say nothing of the parameters, which stay."""

_NEAR = 1e-3
"""Of the bound: where it rises by less, the optimum is near."""

_GROWTH = 1.4
"""Of the size of steps that were too long, when the bound rises."""

_LEAST_PRECISIONS = (0.3, 0.03, 1e-6)
"""Of q, where the prior's is one: sites of negative precision may not leave less than this. The
next is allowed where the optimum has less than the one before."""

_NO_TRAINING = 2.0**-5
"""Parameters are left as they are in steps that have been shortened so far."""

_LARGE = 4
"""Times the rows of the subset: fewer are not worth a beginning on the subset."""

_SUBSET_PASSES = 6
"""Over the subset, before and after features are trained."""

_SUBSET_TOLERANCE = 0.05
"""Nats of the bound of the subset."""

_ROUNDING = 1e-10
"""Of the bound: it may fall by so much."""

_LONGEST_STEP = 1.0
"""Of a likelihood's unconstrained numbers, between two passes."""


@dataclass(frozen=True, eq=False)
class CollapsedFit:
    """
    What :func:`fit_collapsed` did.

    :ivar elbos: the bound that each pass found, ``[passes]``. Where it was lower than before, the
        step was taken back and a shorter one made.
    :ivar elbo: the bound of the model as it is now.
    :ivar reason: why it ended: "converged" (a pass and a step of full size raised the bound by less
        than the tolerance), "passes" or "max_seconds" (the limits), or "stalled" (no step, however
        short, raised the bound).
    :ivar message: the reason in words.
    :ivar frozen: the names of the feature parameters that were trained on the subset and are no
        longer trainable.
    :ivar subset_seconds: the seconds for everything on the subset.
    :ivar pass_seconds: the seconds for all passes.
    :ivar seconds: the seconds for everything.
    """

    elbos: tuple[float, ...] = field(repr=False)
    elbo: float
    reason: CollapsedReason
    message: str
    frozen: tuple[str, ...]
    subset_seconds: float
    pass_seconds: float
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether the bound did not rise any more."""
        return self.reason == "converged"


def fit_collapsed(
    model: CollapsedSVGP,
    *,
    max_passes: int = 20,
    tolerance: float = 0.01,
    steps: int = 20,
    max_seconds: float | None = None,
    subset_size: int = 3_000,
    subset_steps: int = 25,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
) -> CollapsedFit:
    """
    Train a :class:`~interdomain.models.CollapsedSVGP` in a few passes over its data.

    1. On a random subset the same as below is done for a beginning, if there are many more rows;
       and if features depend on trainable parameters (the input scales of
       harmonics) these are trained there too, in turns, and marked not trainable, for good.
    2. A pass over all rows: the bound at the present q, and the sites that are tangent there.
    3. A natural-gradient step of size one: q of these sites. If they make no Gaussian, or the next
       pass finds a lower bound, which can happen only to likelihoods that are not log-concave or
       in the first passes, half of the step is made instead, and so on.
    4. L-BFGS for the parameters of the kernel and the mean function on the sums over the sites,
       without data, at O(M^3) a step; and a Newton step for those of the likelihood.
    5. Again from 2, until the bound rises by less than ``tolerance``.

    The optimum is that of ``gpflow.models.SVGP``; log-concave likelihoods take five to ten passes.

    :param model: its parameters and q are trained in place, from what they are.
    :param max_passes: over all rows, at most.
    :param tolerance: nats of the bound, over all rows.
    :param steps: L-BFGS iterations between two passes, at most; 0 leaves all parameters as they
        are, and computes q alone.
    :param max_seconds: no pass is begun after these; None for no limit.
    :param subset_size: rows to draw, without replacement; all, if there are fewer. None are drawn
        where nothing is left to freeze and there are no more than four times as many rows.
    :param subset_steps: L-BFGS iterations for the features on the subset, at most.
    :param seed: of the subset.
    :param options: for SciPy's L-BFGS-B; see :func:`fit`.
    :param checkpoint_dir: a folder in which the state is kept after each pass (``state.npz``), and
        what a pass has done (``pass.npz``), unless the model has a ``checkpoint_path``.
    :param resume: go on from what is in ``checkpoint_dir``.
    :param progress: show a progress bar.
    :raises ValueError: for wrong arguments, a model of another class, or targets that the
        likelihood does not know.
    """
    started = time.perf_counter()
    if not isinstance(model, CollapsedSVGP):
        raise ValueError(
            f"model: found a {type(model).__name__}; pass an interdomain.models.CollapsedSVGP, or "
            "call interdomain.training.fit."
        )
    max_passes = integer("max_passes", max_passes, at_least=1)
    tolerance = number("tolerance", tolerance, at_least=0)
    steps = integer("steps", steps, at_least=0)
    if max_seconds is not None:
        max_seconds = number("max_seconds", max_seconds, above=0)
    integer("subset_size", subset_size, at_least=1)
    integer("subset_steps", subset_steps, at_least=1)
    boolean("resume", resume)
    boolean("progress", progress)
    if resume and checkpoint_dir is None:
        raise ValueError(
            "checkpoint_dir must be given to resume from, found None; pass the folder of the run "
            "that was interrupted, or resume=False."
        )
    workers = model.workers
    progress = progress and workers.is_chief
    checkpoint = None
    if checkpoint_dir is not None:
        checkpoint = PassCheckpoint(Path(checkpoint_dir), model, resume=resume)
        if model.checkpoint_path is None:
            name = "pass" if model.keeps_parts else "pass.npz"
            model.checkpoint_path = Path(checkpoint_dir) / name
    state = None if checkpoint is None else checkpoint.load()
    trainable = {n: p for n, p in model.feature_parameters.items() if p.trainable}
    arguments: dict[str, Any] = {
        "steps": steps,
        "arguments": {"options": options, "progress": False},
    }
    if state is None and (trainable or _is_large(model, subset_size)):

        def few_passes(subset: CollapsedSVGP, number: int | None = None) -> None:
            own = arguments if number is None else {**arguments, "steps": 0}
            with _frozen(trainable.values()):
                passes = _Passes(subset, tolerance=max(_SUBSET_TOLERANCE, tolerance), **own)
                passes.run(None, _SUBSET_PASSES if number is None else number, None, started)

        begin_on_subset(
            model, subset_size, steps=subset_steps, seed=seed, options=options, passes=few_passes
        )
    for parameter in trainable.values():
        gpflow.set_trainable(parameter, False)
    model.broadcast_parameters()
    subset_seconds = time.perf_counter() - started
    passes = _Passes(model, tolerance=tolerance, checkpoint=checkpoint, **arguments)
    with tqdm(total=max_passes, desc="passes", disable=not progress, leave=True) as bar:
        reason, message = passes.run(state, max_passes, max_seconds, started, bar)
    model.broadcast_parameters()
    return CollapsedFit(
        elbos=tuple(passes.elbos),
        elbo=passes.best.result.elbo,
        reason=reason,
        message=message,
        frozen=tuple(trainable),
        subset_seconds=subset_seconds,
        pass_seconds=passes.seconds,
        seconds=time.perf_counter() - started,
    )


def _is_large(model: CollapsedSVGP, subset_size: int) -> bool:
    """Whether a pass takes so much longer than one over the subset that it pays to begin there."""
    num_rows = model.num_rows
    return num_rows is None or num_rows > _LARGE * subset_size


@contextmanager
def _frozen(parameters: Iterable[gpflow.Parameter | tf.Variable]) -> Iterator[None]:
    """These are not trained meanwhile."""
    parameters = [parameter for parameter in parameters if parameter.trainable]
    for parameter in parameters:
        gpflow.set_trainable(parameter, False)
    try:
        yield
    finally:
        for parameter in parameters:
            gpflow.set_trainable(parameter, True)


class _Point(NamedTuple):
    """Where a pass was made, and what it found."""

    sites: Sites
    values: list[Array]
    result: PassResult


class _Passes:
    """Passes with a step after each."""

    def __init__(
        self,
        model: CollapsedSVGP,
        *,
        steps: int,
        tolerance: float,
        arguments: dict[str, Any],
        checkpoint: PassCheckpoint | None = None,
    ) -> None:
        self._model, self._steps, self._tolerance = model, steps, tolerance
        self._arguments, self._checkpoint = arguments, checkpoint
        trainable = {id(p) for p in model.likelihood.trainable_parameters}
        self._of_likelihood = [
            p.unconstrained_variable for p in model.likelihood.trainable_parameters
        ]
        self._variables = [
            *self._of_likelihood,
            *(
                p.unconstrained_variable
                for p in model.trainable_parameters
                if id(p) not in trainable
            ),
        ]
        self._best: _Point | None = None
        self._tilted: TiltedEvidence | None = None
        self._settled, self._trained = False, steps == 0
        self._weight, self._first_weight = 0.0, 0
        self._share, self._halved = 1.0, False
        self._whole, self._near, self._least_precision = True, False, _LEAST_PRECISIONS[0]
        self.elbos: list[float] = []
        self.seconds = 0.0

    @property
    def best(self) -> _Point:
        """The best point so far; the model is there when the passes end."""
        assert self._best is not None
        return self._best

    def run(
        self,
        state: PassState | None,
        max_passes: int,
        max_seconds: float | None,
        started: float,
        bar: Any = None,
    ) -> tuple[CollapsedReason, str]:
        """Why it ended, and that in words."""
        if state is not None:
            self.elbos, self._share = list(state.elbos), state.share
            if bar is not None:
                bar.update(len(self.elbos))
        if not self._model.has_sites:
            self._model.narrow(_BEGINNING)
        while True:
            if self.elbos and max_seconds is not None:
                if time.perf_counter() - started > max_seconds:
                    self._go_back()
                    return "max_seconds", f"{max_seconds:g} seconds have passed"
            gain = self._pass()
            if bar is not None:
                bar.update()
                bar.set_postfix_str(f"bound {self.best.result.elbo:.6g}")
            if gain is not None and gain < self._tolerance and self._share == 1.0:
                if self._whole and self._trained:
                    return "converged", f"the last step raised the bound by {gain:.2g}"
                if not self._whole:
                    self._allow_less()
            if len(self.elbos) >= max_passes:
                self._go_back()
                return "passes", f"{max_passes} passes were made"
            if self._share < _LEAST_SHARE:
                self._go_back()
                return "stalled", "no step raises the bound, however short it is"
            self._step()
            if self._checkpoint is not None:
                self._checkpoint.save(self._model, self._variables, self.elbos, self._share)

    def _pass(self) -> float | None:
        """A pass; returns by how much the bound has risen, None if it has not, and the model was
        taken back."""
        begun = time.perf_counter()
        result = self._model.pass_over_data()
        self.seconds += time.perf_counter() - begun
        before = -np.inf if self._best is None else self._best.result.elbo
        if self._best is None and not np.isfinite(result.elbo):
            raise ValueError(
                "model: features, moments of f or the expected log-likelihood of some finite rows "
                "are NaN or infinite to begin with; check the kernel's parameters, and the scales "
                "of X and Y."
            )
        self.elbos.append(result.elbo)
        slack = 0.0 if self._best is None else _ROUNDING * abs(before)
        if result.elbo >= before - slack:
            values = [variable.numpy() for variable in self._variables]
            self._best = _Point(self._model.sites, values, result)
            if self._weight > 0:
                self._first_weight = max(0, self._first_weight - 1)
            self._settled = self._settled or result.elbo - before < _SETTLED * abs(result.elbo)
            self._near = self._near or result.elbo - before < 1 + _NEAR * abs(before)
            if not self._halved:
                self._share = min(1.0, _GROWTH * self._share)
            self._halved = False
            return result.elbo - before
        if self._weight > 0:
            self._first_weight = _WEIGHTS.index(self._weight) + 1
        else:
            self._share /= 2
            self._halved = True
        return None

    def _allow_less(self) -> None:
        """The optimum with sites as they are is not among the q that were allowed."""
        lower = [value for value in _LEAST_PRECISIONS if value < self._least_precision]
        self._least_precision = max(lower, default=0.0)

    def _go_back(self) -> None:
        best = self.best
        for variable, value in zip(self._variables, best.values, strict=True):
            variable.assign(value)
        self._model.assign_sites(best.sites)

    def _step(self) -> None:
        """From the best point on."""
        self._go_back()
        best, result = self.best, self.best.result
        clipped = best.sites.mixed(result.clipped, self._share)
        signed = best.sites.mixed(result.sites, self._share)
        negative = result.sites is not result.clipped
        self._whole, self._weight = not negative, 0.0
        self._model.assign_sites(signed)
        tilted = negative and self._near and self._model.has_q()
        self._model.assign_sites(clipped)
        if self._settled and self._share > _NO_TRAINING and self._steps:
            self._newton(result)
            self._train((clipped, signed) if tilted else None)
            self._trained = True
        if not (negative and self._near):
            return
        for weight in _WEIGHTS[self._first_weight :]:
            self._model.assign_sites(clipped.mixed(signed, weight))
            if self._model.has_q(self._least_precision):
                break
        self._weight = weight
        self._whole = weight == 1.0

    def _train(self, tilted: tuple[Sites, Sites] | None) -> None:
        """The parameters of the kernel and the mean function."""
        if len(self._variables) == len(self._of_likelihood):
            return
        with _frozen(self._model.likelihood.parameters), suppress(NonFiniteError):
            model: Any = self._model
            if tilted is not None:
                if self._tilted is None:
                    self._tilted = TiltedEvidence(self._model)
                model = self._tilted
                model.tilt(*tilted)
            with limited(self._model.trainable_parameters):
                fit_quietly(model, steps=self._steps, **self._arguments)

    def _newton(self, result: PassResult) -> None:
        """For the likelihood's numbers, with the curvature of a maximum and no step too long."""
        if not self._of_likelihood:
            return
        curvatures, directions = np.linalg.eigh((result.curvatures + result.curvatures.T) / 2)
        scale = np.maximum(np.abs(curvatures), 1e-12 + 1e-8 * np.max(np.abs(curvatures)))
        step = self._share * directions @ ((directions.T @ result.slopes) / scale)
        step *= min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(step))), 1e-300))
        start = 0
        for variable in self._of_likelihood:
            size = int(tf.size(variable))
            part = step[start : start + size].reshape(variable.shape)
            variable.assign_add(tf.cast(part, variable.dtype))
            start += size
