"""Inter-domain inducing variables for GPflow 2.

``import interdomain as idm`` registers the covariances, posteriors and KL divergences of this
library's types with GPflow's dispatchers. GPflow's models then accept these types like its own.

The packages ``deep`` (layers of deep GPs; needs GPflux), ``tables`` and ``estimators`` (both need
scikit-learn and have its interface) are imported only when they are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import (
    covariances,
    diagnostics,
    functionals,
    inducing_variables,
    kernels,
    linalg,
    models,
    plotting,
    regression,
    sphere,
    testing,
    training,
    transforms,
)
from .fitting import fit
from .quantiles import predict_quantiles
from .sampling import sample_functions
from .serving import predict_in_batches, save

if TYPE_CHECKING:
    from . import deep, estimators, tables
    from .estimators import race, recommend

__version__ = "0.4.0"

_ON_DEMAND = {
    "deep": "deep",
    "estimators": "estimators",
    "race": "estimators",
    "recommend": "estimators",
    "tables": "tables",
}


def __getattr__(name: str) -> Any:
    """A package that is imported on demand, or a function of such a package."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = importlib.import_module(f".{_ON_DEMAND[name]}", __name__)
    return getattr(package, name, package)


__all__ = [
    "__version__",
    "covariances",
    "deep",
    "diagnostics",
    "estimators",
    "fit",
    "functionals",
    "inducing_variables",
    "kernels",
    "linalg",
    "models",
    "plotting",
    "predict_in_batches",
    "predict_quantiles",
    "race",
    "recommend",
    "regression",
    "sample_functions",
    "save",
    "sphere",
    "tables",
    "testing",
    "training",
    "transforms",
]
