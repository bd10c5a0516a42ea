"""Inter-domain inducing variables for GPflow 2.

``import interdomain as idm`` registers the covariances, posteriors and KL divergences of this
library's types with GPflow's dispatchers. GPflow's models then accept these types like its own.

``interdomain.deep``, with layers of deep GPs, needs GPflux and is imported only when it is used.
"""

import importlib
from typing import Any

from . import (
    covariances,
    devices,
    diagnostics,
    distributed,
    inducing_variables,
    kernels,
    linalg,
    models,
    plotting,
    posteriors,
    regression,
    sampling,
    serving,
    sphere,
    tables,
    testing,
    training,
    transforms,
)

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """``interdomain.deep``, imported on demand."""
    if name == "deep":
        return importlib.import_module(".deep", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "__version__",
    "covariances",
    "devices",
    "diagnostics",
    "distributed",
    "inducing_variables",
    "kernels",
    "linalg",
    "models",
    "plotting",
    "posteriors",
    "regression",
    "sampling",
    "serving",
    "sphere",
    "tables",
    "testing",
    "training",
    "transforms",
]
