"""The foundation of all families: the protocol of inducing variables, kernels of finite rank, sums,
products and several outputs. It does not import any family; it imports only ``linalg``."""

__all__: list[str] = []
