"""No ladder of isinstance over operators or families: each answers for itself (docs: DESIGN).

A check of an operator's class belongs into that operator's file in `linalg`, which registers its
`square_root`; a check of a family's class into the kernel file, the inducing-variable file and the
covariance file of that family, the one that registers covariances for it. Anywhere else a method or
a dispatcher takes its place. Abstract classes may be asked for everywhere: they are what the
families have in common.
"""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, get_args

import gpflow
import tensorflow as tf

import interdomain

BASES = (gpflow.kernels.Kernel, gpflow.inducing_variables.InducingVariables)
OPERATORS = tf.linalg.LinearOperator

Part = tuple[ast.Module, dict[str, Any]]
"""What a file says, and what its names stand for."""


@cache
def _parts() -> dict[str, Part]:
    """By file."""
    found = {}
    for info in pkgutil.walk_packages(interdomain.__path__, "interdomain."):
        module = import_module(info.name)
        name = info.name.removeprefix("interdomain.").replace(".", "/")
        tree = ast.parse(inspect.getsource(module))
        found[f"{name}/__init__.py" if info.ispkg else f"{name}.py"] = (tree, vars(module))
    return found


@cache
def _families() -> dict[type, str]:
    """The concrete kernels and inducing variables of the library, and the file of each."""
    return {
        kind: file
        for file, (_, names) in _parts().items()
        if file.startswith(("kernels/", "inducing_variables/"))
        for kind in names.values()
        if inspect.isclass(kind)
        and kind.__module__ == names["__name__"]
        and issubclass(kind, BASES)
        and not inspect.isabstract(kind)
    }


def _flat(value: Any) -> Iterator[type]:
    """The classes in one, in a union, or in a tuple of these."""
    for entry in value if isinstance(value, tuple) else get_args(value) or (value,):
        if isinstance(entry, tuple):
            yield from _flat(entry)
        elif isinstance(entry, type):
            yield entry


def _classes(nodes: list[ast.expr], names: dict[str, Any]) -> set[type]:
    """Those that expressions stand for; none for a name of a function's own."""
    found: set[type] = set()
    for node in nodes:
        try:
            value = eval(compile(ast.Expression(node), "a class", "eval"), dict(names))
        except NameError:
            continue
        found.update(_flat(value))
    return found


def _is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def asked(part: Part) -> set[type]:
    """The classes that a file asks for with isinstance, issubclass, `type(...) is` or `in`."""
    tree, names = part
    found: set[type] = set()
    for node in ast.walk(tree):
        if _is_call(node, "isinstance", "issubclass"):
            found |= _classes(node.args[1:], names)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            others = [side for side in sides if not _is_call(side, "type")]
            if len(others) < len(sides):
                found |= _classes(others, names)
    return found


def registered(part: Part, function: str = "") -> set[type]:
    """The classes in `@<function>.register(...)`; of any function by default."""
    tree, names = part
    found: set[type] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "register" and function in ("", ast.unparse(node.func.value)):
                found |= _classes(node.args, names)
    return found


def own_files(kind: type) -> set[str]:
    """The files that may ask for a class."""
    parts = _parts()
    if kind not in _families():
        linalg = [file for file in parts if file.startswith("linalg/")]
        return {file for file in linalg if kind in registered(parts[file], "square_root")}
    own = _families()[kind]
    files = {own}
    if own.count("/") > 1:  # a subpackage of kernels
        files |= {file for file in parts if file.startswith(own.rpartition("/")[0] + "/")}
    covariances = [file for file in parts if file.startswith("covariances/")]
    return files | {file for file in covariances if kind in registered(parts[file])}


def ladders(parts: dict[str, Part]) -> set[tuple[str, str]]:
    """(file, class) of all that are asked for outside of their own files."""
    return {
        (file, kind.__name__)
        for file, part in parts.items()
        for kind in asked(part)
        if (kind in _families() or issubclass(kind, OPERATORS)) and file not in own_files(kind)
    }


def test_no_ladders_over_operators_or_families() -> None:
    found = ladders(_parts())
    assert not found, f"use a method of the class or a dispatcher: {sorted(found)}"


def test_families_and_their_files_are_found() -> None:
    """Every concrete public class, so that the test above looks at something."""
    for package in (interdomain.kernels, interdomain.inducing_variables):
        for name in package.__all__:
            kind = getattr(package, name)
            if inspect.isclass(kind) and issubclass(kind, BASES) and not inspect.isabstract(kind):
                assert kind in _families()
    assert interdomain.kernels.ZonalKernel not in _families()
    assert _families()[interdomain.kernels.ArcCosine] == "kernels/zonal/arc_cosine.py"
    assert own_files(tf.linalg.LinearOperatorDiag) == {"linalg/diagonal.py"}
    assert own_files(interdomain.inducing_variables.SphericalHarmonics) == {
        "inducing_variables/spherical_harmonics.py",
        "covariances/spherical_harmonics.py",
        "covariances/finite_rank.py",
        "covariances/kvus.py",
        "covariances/_lifted_inputs.py",
    }


def test_every_form_of_asking_is_seen() -> None:
    names = {
        "Diagonal": tf.linalg.LinearOperatorDiag,
        "KINDS": (gpflow.kernels.Kernel, tf.linalg.LinearOperatorDiag),
        "ArcCosine": interdomain.kernels.ArcCosine,
        "ZonalKernel": interdomain.kernels.ZonalKernel,
    }
    for source, found in {
        "isinstance(x, Diagonal)": {"LinearOperatorDiag"},
        "isinstance(x, (ZonalKernel, Diagonal))": {"LinearOperatorDiag"},
        "isinstance(x, ZonalKernel | Diagonal)": {"LinearOperatorDiag"},
        "issubclass(x, KINDS)": {"LinearOperatorDiag"},
        "type(x) is Diagonal": {"LinearOperatorDiag"},
        "type(x) in (ZonalKernel, Diagonal)": {"LinearOperatorDiag"},
        "isinstance(x, ArcCosine)": {"ArcCosine"},
        "isinstance(x, ZonalKernel)": set(),
    }.items():
        part = (ast.parse(source), names)
        assert {name for _, name in ladders({"models/some.py": part})} == found, source
    part = (ast.parse("isinstance(x, ArcCosine)"), names)
    assert not ladders({"kernels/zonal/base.py": part})
