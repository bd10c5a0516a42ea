"""Covariances of inducing variables with each other and with f.

``Kuu`` and ``Kuf`` are GPflow's own dispatchers, and ``Kvu`` is this library's; ``Kuu_operator``
keeps the structure of Kuu.
"""

from gpflow.covariances import Kuf, Kuu

from .core.covariances import Kvu
from .core.pairs import Kuu_operator

__all__ = ["Kuf", "Kuu", "Kuu_operator", "Kvu"]
