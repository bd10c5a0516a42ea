"""The passes that train a :class:`interdomain.models.DualSVGP`, and the step after each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ...training.losses import require
from ...training.results import Ending
from ...training.run import Run
from .model import DualSVGP
from .parameters import assign_add, slopes_of_prior, solution, train_parameters
from .row_sites import PassResult
from .sites import Sites

_BEGINNING = 0.01  # of the prior's variance that q has without a better start

_WITHIN = 1.0  # prior deviations: a level of f that is nearer is within the prior

# Shares of the bound: while it rises by more, sites say nothing of the parameters, which stay; if
# it rises by less, the optimum is near; and it may fall by so much.
_SETTLED, _NEAR, _ROUNDING = 0.1, 1e-3, 1e-10

# Shares of the way to the tangent sites: shorter steps leave the parameters as they are; shorter
# ones end the fit. Steps that were too long grow by so much when the bound rises.
_NO_TRAINING, _LEAST_SHARE, _GROWTH = 2.0**-3, 2.0**-6, 1.4

_LONGEST_STEP = 1.0
"""The longest step of a likelihood's unconstrained numbers between two passes."""

_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW = 0.01, 1e-6  # nats of the bound

_STEPS = 20
"""Steps of L-BFGS between two passes."""


class _Point(NamedTuple):
    """What a pass found.

    :ivar objective: the bound, and the log density of priors of parameters.
    """

    sites: Sites
    result: PassResult
    objective: float


class Passes:
    """Passes over the data, and steps of q and the parameters in turn: see :func:`.run.train`.

    The next step depends on the best point so far and on the attributes in :attr:`_state` alone:
    this is what checkpoints keep, and the pass at that point is made again where a fit is resumed.

    :param trains: whether parameters are trained; otherwise q alone.
    :param begin: called before the first pass, to make a better q.
    :ivar best: the best point so far; the model is there after each pass.
    :ivar seconds: the time that passes took.
    """

    exact = True
    best: _Point
    _run: Run
    _state = ("_share", "_halved", "_settled", "_near", "_exact")

    def __init__(
        self,
        model: DualSVGP,
        tolerance: float | None,
        *,
        trains: bool = True,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._model, self._tolerance, self._begin = model, tolerance, begin
        trained = model.likelihood.trainable_parameters
        self._likelihood_variables = [p.unconstrained_variable for p in trained]
        parameters = [p.unconstrained_variable for p in model.trainable_parameters]
        mean_parameters = [] if model.mean_is_residual else model.mean_function.trainable_parameters
        self._mean_variables = [p.unconstrained_variable for p in mean_parameters if trains]
        self._trains = trains and bool(parameters)
        # The share of the way that a step goes; whether it was halved after the last pass; whether
        # the bound rises so slowly that parameters are trained, and that the optimum is near; and
        # whether the last step was to the tangent sites as they are, with parameters trained.
        self._share, self._halved = 1.0, False
        self._settled = self._near = self._exact = False
        self.seconds = 0.0
        self._sites, kinds = model.site_variables(), (model.likelihood, model.inducing_variable)
        self.variables = (*parameters, *self._sites)
        self._progress = tf.Variable("", trainable=False)
        self.stored = {
            "parameters": [parameter.unconstrained_variable for parameter in model.parameters],
            "sites": list(self._sites),
            "progress": self._progress,
        }
        self.described = {
            "of": ", ".join(type(part).__name__ for part in kinds),
            "sites": [list(part.shape) for part in self._sites],
            "tolerance": tolerance,
        }

    def train(self, run: Run) -> Ending:
        """Make the passes that are left, and leave the model at the best point.

        :raises NumericalBreakdown: if the bound of the first pass is not finite.
        """
        model, self._run = self._model, run
        default = max(_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW * model.num_data)
        enough = self._enough = default if self._tolerance is None else self._tolerance
        gain, ending = np.inf, None
        if run.step:
            # If parameters of features were restored, the model itself drops sites of those before.
            model.assign_sites(Sites(*(part.numpy() for part in self._sites)))
            self.__dict__.update(json.loads(self._progress.numpy()))
            self.best = self._point(model.pass_over_data())
            run.keep(run.step)
        else:
            self._begin()
            if not any(np.any(part) for part in model.sites):
                self._start()
            gain, ending = self._pass()
        while True:
            if gain < enough and self._share == 1.0:
                if self._exact:
                    return Ending("converged", f"the last step raised the bound by {gain:.2g}")
                if self._near:
                    self._share /= 2  # a shorter step to the sites as they are may be possible
            if ending is not None:
                return self._with_gain(ending, gain)
            if self._share < _LEAST_SHARE:
                return Ending("stalled", "no step raises the bound, however short it is")
            self._step()
            gain, ending = self._pass()

    def objective(self, step: int) -> float:
        """The bound at the present parameters and sites."""
        # If parameters of features were restored, the model itself drops sites of those before.
        self._model.assign_sites(Sites(*(part.numpy() for part in self._sites)))
        return self._model.pass_over_data().elbo

    def _with_gain(self, ending: Ending, gain: float) -> Ending:
        """What the last pass has gained, for a fit that ends by its steps."""
        if ending.reason != "steps":
            return ending
        what = (
            f"the last one raised the bound by {gain:.2g} nats"
            if gain < np.inf
            else ("the bound of the last one was lower" if self._run.step > 1 else "the first one")
        )
        enough = f"a rise below {self._enough:.2g} is convergence"
        return Ending("steps", f"{ending.message}; {what}, and {enough}")

    def _start(self) -> None:
        """Go to the sites that rows have by themselves; the parameters, too, if the prior has to
        become wider. If the likelihood is within the prior, or the bound is not finite there, q is
        a narrow prior: parameters then learn from rows that agree, and not from each row alone."""
        model = self._model
        is_far = model.start(_WITHIN)
        if any(np.any(part) for part in model.sites):
            if is_far and self._trains:
                train_parameters(model, _STEPS, factor=np.inf)
            self._step_of_mean(1.0)
            if model.has_q() and np.isfinite(model.pass_over_data().elbo):
                return
        model.shrink_q(_BEGINNING)

    def _pass(self) -> tuple[float, Ending | None]:
        """Make a pass; the model is then at the best point.

        :return: By how much the bound has risen (infinity if it has fallen, which is no sign of an
            optimum); and the ending of the fit, if this was the last pass.
        """
        begun, run = time.perf_counter(), self._run
        result = self._model.pass_over_data()
        self.seconds += time.perf_counter() - begun
        now, gain = self._point(result), np.inf
        best = self.best if run.step else now
        if not run.step:
            require(np.isfinite(result.elbo), f"the bound is {result.elbo}")
        if now.objective >= best.objective - _ROUNDING * abs(best.objective):
            if run.step:
                gain = now.objective - best.objective
                self._settled = self._settled or gain < max(
                    _SETTLED * abs(now.objective), self._enough
                )
                self._near = self._near or gain < 1 + _NEAR * abs(best.objective)
                if not self._halved:
                    self._share = min(1.0, _GROWTH * self._share)
            self._halved, self.best = False, now
            run.keep(run.step + 1)
        else:
            self._share /= 2
            self._halved = True
            # Near an optimum with sites of negative precision, a step without these goes down.
            self._near = self._near or best.result.sites is not best.result.clipped
            run.restore()
        self._progress.assign(json.dumps({name: getattr(self, name) for name in self._state}))
        return gain, run.after_step(result.elbo)

    def _point(self, result: PassResult) -> _Point:
        """The point at which the model is, with what a pass found there."""
        objective = result.elbo + float(self._model.log_prior_density())
        return _Point(self._model.sites, result, objective)

    def _step(self) -> None:
        """A step from the best point: of q to the tangent sites, and of the parameters."""
        best, result, share = self.best.sites, self.best.result, self._share
        clipped = best.mixed(result.clipped, share)
        # Sites of negative precision may leave no Gaussian. Without them the way is safer and no
        # longer while the optimum is far, but it ends elsewhere.
        self._exact = self._near or result.sites is result.clipped
        self._model.assign_sites(best.mixed(result.sites, share) if self._exact else clipped)
        if not self._model.has_q():
            self._exact = False
            self._model.assign_sites(clipped)
        trains = self._settled and self._trains
        before = [variable.numpy() for variable in self._mean_variables]
        if trains and share > _NO_TRAINING:
            self._step_of_likelihood(result)
            if len(self._model.trainable_parameters) > len(self._likelihood_variables):
                train_parameters(self._model, _STEPS, share=share)
        for variable, value in zip(self._mean_variables, before, strict=True):
            variable.assign(value)
        self._step_of_mean(share)
        if not self._model.has_q():
            self._exact = False
            self._run.restore()
            self._model.assign_sites(clipped)
        self._exact = self._exact and (trains or not self._trains)

    def _step_of_mean(self, share: float) -> None:
        """A step of the weights of the mean function: with q, which follows, to the maximum of log
        Z, which is quadratic in them."""
        model = self._model
        if not self._mean_variables:
            return
        # Where there is no q, because a factorisation fails, the caller leaves the point.
        with suppress(tf.errors.InvalidArgumentError):
            slopes, curvatures = model.slopes_of_mean(self._mean_variables)
            prior_terms = slopes_of_prior(model.mean_function, self._mean_variables)
            slopes, curvatures = slopes + prior_terms[0], curvatures - prior_terms[1]
            assign_add(self._mean_variables, share * solution(curvatures, slopes))

    def _step_of_likelihood(self, result: PassResult) -> None:
        """Newton's step, with the curvature of a maximum and no step too long."""
        if not self._likelihood_variables:
            return
        prior_terms = slopes_of_prior(self._model.likelihood, self._likelihood_variables)
        slopes, curvatures = result.slopes + prior_terms[0], result.curvatures + prior_terms[1]
        curvatures, directions = np.linalg.eigh((curvatures + curvatures.T) / 2)
        scale = np.maximum(np.abs(curvatures), 1e-12 + 1e-8 * np.max(np.abs(curvatures)))
        step = self._share * directions @ ((directions.T @ slopes) / scale)
        step *= min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(step))), 1e-300))
        assign_add(self._likelihood_variables, step)
