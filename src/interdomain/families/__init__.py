"""The families: each a folder with its kernels, its inducing variables and its mathematics. They
import ``core`` and ``linalg``, and never each other."""

__all__: list[str] = []
