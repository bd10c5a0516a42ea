"""Inter-domain inducing variables for GPflow 2: the kernels, the features, and the models."""

__version__ = "0.1.0"

__all__ = ["__version__"]
