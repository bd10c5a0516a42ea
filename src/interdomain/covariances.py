"""Covariances of inducing variables with each other and with f.

Kuu and Kuf are GPflow's own dispatchers, ``gpflow.covariances.Kuu`` and ``Kuf``. This library adds
``Kvu``, and ``Kuu_operator``, which keeps the structure of Kuu.
"""

from .core.covariances import Kvu
from .core.pairs import Kuu_operator

__all__ = ["Kuu_operator", "Kvu"]
