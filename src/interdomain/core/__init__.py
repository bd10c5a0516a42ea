"""The foundation of all families: the protocol of inducing variables, kernels of finite rank, sums,
products and several outputs. It imports no family; of the other packages it imports ``linalg``."""

__all__: list[str] = []
