"""The families of kernels. A family is a folder with kernels, their inducing variables and the
mathematics. A family imports ``core`` and ``linalg``, but no other family."""

__all__: list[str] = []
