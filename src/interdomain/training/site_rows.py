"""A model of some rows with any likelihood, to start training on and to choose features with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData

from ..covariances.pairs import Block
from ..models import CollapsedSVGP
from ..models.residuals import Residuals
from ..models.site_evidence import SiteEvidence
from ..models.sites import Sites
from ..sphere._typing import Array
from .loop import fit_quietly
from .results import NonFiniteError
from .trust_region import limited

_TURNS = 3

_PASSES = 2
"""For the sites of new features, before these are trained again."""


class RowsWithSites:
    """A model of some rows that keeps its sites when features are replaced.

    So q need not be trained from scratch. It has what
    :func:`interdomain.choosing.pursuit.pursue` needs of a model.

    :param model: the model of all rows, which shares its parameters.
    :param rows: (X, Y).
    :param passes: a function that trains a model of the rows, without the parameters of its
        features; with ``number``, it trains q alone, in at most that many passes.
    :param options: options of SciPy's L-BFGS-B.
    """

    def __init__(
        self,
        model: CollapsedSVGP,
        rows: tuple[Array, Array],
        *,
        passes: Callable[..., None],
        options: Mapping[str, Any] | None,
    ) -> None:
        self._model, self._rows, self._options = model.model_of(rows), rows, options
        self._passes = passes
        self._sites: tuple[Array, Array] | None = None
        self._settled: Block | None = None
        self._evidence: SiteEvidence | None = None

    @property
    def inducing_variable(self) -> Any:
        """Can be replaced."""
        return self._model.inducing_variable

    @inducing_variable.setter
    def inducing_variable(self, value: Any) -> None:
        self._model.inducing_variable = value

    @property
    def kernel(self) -> Any:
        """Can be replaced."""
        return self._model.kernel

    @kernel.setter
    def kernel(self, value: Any) -> None:
        self._model.kernel = value

    @property
    def num_latent_gps(self) -> int:
        """L."""
        return int(self._model.num_latent_gps)

    @property
    def trainable_parameters(self) -> tuple[gpflow.Parameter, ...]:
        """Those of the model."""
        return tuple(self._model.trainable_parameters)

    def draw(self, size: int, *, seed: int = 0) -> tuple[Array, Array]:
        """Rows (X, Y) drawn at random."""
        return self._model.draw(size, seed=seed)

    @property
    def sites(self) -> Sites:
        """The sums over the sites of the rows."""
        return self._at_present()[0].sites

    def elbo(self) -> float:
        """Of the rows, at the present features."""
        return float(self._at_present()[0].elbo())

    def residuals(self) -> Residuals:
        """What q leaves of the sites."""
        return self._at_present()[1].residuals()

    def whitened_mean(self) -> tf.Tensor:
        """Of q."""
        return self._at_present()[0].whitened_mean()

    def predict_log_density(self, data: RegressionData) -> tf.Tensor:
        """Of other rows."""
        return self._at_present()[0].predict_log_density(data)

    def train(self, steps: int) -> None:
        """Train all parameters, in turns of passes and of steps of L-BFGS for those of the kernel,
        features included, with the sites of the rows."""
        if self._sites is not None:
            self._at_present()
        self._passes(self._model)
        if any(parameter.trainable for parameter in self._model.feature_parameters.values()):
            for _ in range(_TURNS):
                evidence = self._take_sites()
                # The last parameters that are good are enough.
                with limited(self._model.trainable_parameters), suppress(NonFiniteError):
                    count = -(-steps // _TURNS)
                    fit_quietly(evidence, steps=count, options=self._options, progress=False)
                self._give_sites(evidence)
                self._passes(self._model, number=_PASSES)
            self._passes(self._model)
        self._take_sites()

    def _at_present(self) -> tuple[CollapsedSVGP, SiteEvidence]:
        """The model and its sites at the present features."""
        block = self.inducing_variable, self.kernel
        known = self._settled
        if known is None or any(new is not old for new, old in zip(block, known, strict=True)):
            if self._sites is None:
                self._passes(self._model)
            else:
                evidence = self._model.evidence_of(self._rows[0])
                evidence.take(*self._sites)
                self._give_sites(evidence)
                self._passes(self._model, number=_PASSES)
            self._take_sites()
        assert self._evidence is not None
        return self._model, self._evidence

    def _take_sites(self) -> SiteEvidence:
        """The sites of the rows at q, which are kept."""
        self._sites = self._model.sites_of(*self._rows)
        self._evidence = self._model.evidence_of(self._rows[0])
        self._evidence.take(*self._sites)
        self._settled = self.inducing_variable, self.kernel
        return self._evidence

    def _give_sites(self, evidence: SiteEvidence) -> None:
        """Make q of these."""
        self._model.assign_sites(Sites(*(np.asarray(part) for part in evidence.sites())))
