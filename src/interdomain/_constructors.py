"""Checks that the constructors of all public classes have in common.

For an argument that does not exist, the error suggests the one that was probably meant. ``name``,
``active_dims``, ``seed`` and booleans are checked in one place for all classes.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from ._arguments import as_integer, boolean, integer, items, short

_MEANT = {
    "lengthscales": ("lengthscale", "lag", "weight_variances"),
    "lengthscale": ("lengthscales", "lag"),
    "variances": ("variance",),
    "weights_variance": ("weight_variances",),
    "ARD": ("weight_variances",),
    "ard": ("weight_variances",),
    "degree": ("max_degree", "degrees"),
    "input_dims": ("input_dim", "dimension"),
    "input_dim": ("dimension",),
    "layers": ("depth",),
    "kern": ("kernel",),
    "kernel": ("base_kernel", "base_kernels"),
    "base_kernels": ("base_kernel",),
    "inducing_variables": ("inducing_variable", "Z"),
    "inducing_points": ("inducing_variable", "Z"),
    "feature": ("inducing_variable",),
    "num_latent": ("num_latent_gps",),
    "num_outputs": ("num_latent_gps",),
    "output_dim": ("num_latent_gps",),
    "M": ("num_inducing", "num_frequencies"),
    "num_inducing_points": ("num_inducing",),
    "noise": ("noise_variance",),
    "patch_size": ("patch_shape",),
    "image_size": ("image_shape",),
    "maxiter": ("steps",),
}
"""Names of arguments in GPflow and elsewhere, and the names that they may have here."""


def _check_name(value: Any) -> None:
    if not isinstance(value, str) or not (value.isascii() and value.isidentifier()):
        raise ValueError(f"name must be a Python identifier, found {short(value)}.")


def _check_active_dims(value: Any) -> None:
    if isinstance(value, slice):
        return
    rule = "a slice or a list of columns"
    columns = [as_integer(column) for column in items("active_dims", value, rule)]
    if not columns or None in columns or len(set(columns)) < len(columns):
        raise ValueError(f"active_dims must be {rule}, each once, found {short(value)}.")


_COMMON: dict[str, Callable[[Any], object]] = {
    "name": _check_name,
    "active_dims": _check_active_dims,
    "seed": functools.partial(integer, "seed", at_least=0),
}
"""Arguments that mean the same everywhere; where one may be None, that is its default."""


def loaded_modules(package: str) -> list[str]:
    """The names of a package and of those of its modules that are already imported. Nothing is
    imported to find them, because that would load subpackages that are imported on demand.
    """
    return sorted(name for name in sys.modules if name == package or name.startswith(f"{package}."))


def check_constructors(package: str) -> None:
    """Add these checks to all constructors and class methods of the classes of a package."""
    for module in loaded_modules(package):
        for kind in vars(sys.modules[module]).values():
            own = inspect.isclass(kind) and kind.__module__ == module
            if own and not kind.__name__.startswith("_"):
                for name, made in list(_constructors(kind)):
                    setattr(kind, name, made)


def _constructors(kind: type) -> Iterator[tuple[str, Any]]:
    """Those that the class itself defines, checked. The name of a result is any text."""
    free = ("name",) if dataclasses.is_dataclass(kind) else ()
    for name, value in vars(kind).items():
        if name == "__init__" and isinstance(value, FunctionType):
            yield name, checked(value, kind.__name__, free)
        elif isinstance(value, (classmethod, staticmethod)) and not name.startswith("_"):
            yield name, type(value)(checked(value.__func__, f"{kind.__name__}.{name}"))


def checked(
    function: Callable[..., Any], shown: str, free: tuple[str, ...] = ()
) -> Callable[..., Any]:
    """The function, with checks of its keywords and of the arguments that are common to many.

    :param shown: The name of the function in messages.
    :param free: Arguments that have another meaning here, and are not checked.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}:
        return function
    known = [name for name in parameters if name not in ("self", "cls")]
    booleans = [name for name in known if parameters[name].annotation in (bool, "bool")]
    common = [name for name in known if name in _COMMON and name not in free]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in parameters:
                made = type(args[0]).__name__ if args and function.__name__ == "__init__" else shown
                raise TypeError(_unknown(made, name, known))
        given = dict(zip(parameters, args, strict=False)) | kwargs
        for name in booleans:
            if name in given:
                boolean(name, given[name])
        for name in common:
            if name in given and not (given[name] is None and parameters[name].default is None):
                _COMMON[name](given[name])
        return function(*args, **kwargs)

    return call


def _unknown(shown: str, name: str, known: list[str]) -> str:
    meant = [other for other in _MEANT.get(name, ()) if other in known]
    meant = meant or difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {meant[0]}?" if meant else "."
    return f"{shown} has no argument {name!r}{hint} It takes {', '.join(known) or 'none'}."
