"""What every family is built on: the protocol of inducing variables, kernels of finite rank, sums,
products and several outputs. It knows no family; it uses ``linalg`` alone."""

__all__: list[str] = []
