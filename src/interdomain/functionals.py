"""Linear functionals of f that rows observe, and that predictions can return.

:class:`Value` is f at a row, and :class:`Derivative` a slope. :class:`Mean` averages over a box,
:class:`Blur` over a Gaussian, and :class:`Areas` over regions. :class:`ByDegree` acts on harmonics
of the globe. :class:`interdomain.kernels.Functional` is the kernel of rows with functionals.
"""

from .core.areas import Areas
from .core.averages import Blur, Mean
from .core.functionals import ByDegree, Derivative, LinearFunctional, Value

__all__ = ["Areas", "Blur", "ByDegree", "Derivative", "LinearFunctional", "Mean", "Value"]
