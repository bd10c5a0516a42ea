"""The dictionary of features of rows with functionals: that of the prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gpflow.inducing_variables import InducingVariables

from .._arguments import Array, IntArray
from .dictionaries import Dictionary
from .finite_rank import FiniteRank
from .pairs import dictionary_of


@dataclass(frozen=True, eq=False)
class FunctionalDictionary(Dictionary):
    """The prior's dictionary, whose features belong to a kernel of functionals.

    :ivar inner: The dictionary of the prior.
    :ivar kernel: The :class:`interdomain.kernels.Functional` kernel.
    """

    inner: Dictionary
    kernel: Any

    @classmethod
    def of(cls, inducing_variable: InducingVariables, kernel: Any) -> FunctionalDictionary | None:
        """The dictionary of the features of a kernel; None if the prior has none."""
        inner = dictionary_of(inducing_variable, kernel.prior)
        return None if inner is None else cls(inner, kernel)

    @property
    def atoms(self) -> IntArray:
        return self.inner.atoms

    def _places(self, X: Array) -> Array:
        places: Array = self.kernel.rows.places(X)
        return places

    def arranged(self, X: Array) -> FunctionalDictionary:
        return replace(self, inner=self.inner.arranged(self._places(X)))

    def likeliest(self, X: Array, count: int) -> IntArray:
        return self.inner.likeliest(self._places(X), count)

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        return self.inner.neighbours(atoms, limit)

    def features(self, atoms: IntArray) -> tuple[InducingVariables, Any]:
        features, prior = self.inner.features(atoms)
        prior = FiniteRank(prior, features) if self.inner.finite_rank else prior
        return features, self.kernel.with_prior(prior)

    def owners(self, atoms: IntArray) -> IntArray:
        return self.inner.owners(atoms)
