"""What GPflux needs of this library, an extra: ``pip install interdomain[deep]``.

``import interdomain`` does not load it; ``import interdomain.deep`` does, and registers function
samples of this library's inducing variables with GPflux.
"""

from .._tracing import leave_unconverted
from . import sampling

leave_unconverted(__name__)
del leave_unconverted

__all__ = ["sampling"]
