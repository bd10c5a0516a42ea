"""What `import interdomain` does and does not do, and what the distribution contains."""

import ast
import importlib.metadata
import importlib.resources
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, get_args

import gpflow
import pytest
import tensorflow as tf

import interdomain

# GPflow is imported first, so that what TensorFlow and GPflow do to the process is not counted.
# Standard output and error are caught as file descriptors: native code writes there as well.
IMPORT_AND_REPORT = """
import json, os, tempfile

import gpflow
import tensorflow as tf

def state():
    dispatchers = {
        "Kuu": gpflow.covariances.Kuu,
        "Kuf": gpflow.covariances.Kuf,
        "conditional": gpflow.conditionals.conditional,
        "get_posterior_class": gpflow.posteriors.get_posterior_class,
        "prior_kl": gpflow.kullback_leiblers.prior_kl,
    }
    registered = {
        name: {str(types): id(function) for types, function in dispatcher.funcs.items()}
        for name, dispatcher in dispatchers.items()
    }
    settings = {
        "environment": dict(os.environ),
        "gpflow": repr(gpflow.config.config()),
        "threads": [
            tf.config.threading.get_inter_op_parallelism_threads(),
            tf.config.threading.get_intra_op_parallelism_threads(),
        ],
        "eager": tf.config.functions_run_eagerly(),
    }
    return settings, registered, "matplotlib" in os.sys.modules

settings_before, registered_before, drawing_before = state()
with tempfile.TemporaryFile() as caught:
    saved = os.dup(1), os.dup(2)
    os.dup2(caught.fileno(), 1)
    os.dup2(caught.fileno(), 2)
    import interdomain
    os.sys.stdout.flush()
    os.sys.stderr.flush()
    os.dup2(saved[0], 1)
    os.dup2(saved[1], 2)
    caught.seek(0)
    printed = caught.read().decode()
settings_after, registered_after, drawing_after = state()

print(json.dumps({
    "printed": printed,
    "settings_before": settings_before,
    "settings_after": settings_after,
    "imports_matplotlib": drawing_after and not drawing_before,
    "replaced_registrations": [
        name + types
        for name, functions in registered_before.items()
        for types, function in functions.items()
        if registered_after[name].get(types) != function
    ],
}))
"""


@pytest.mark.slow
def test_import_prints_and_changes_nothing() -> None:
    """No output, no global state, no registration of GPflow, and no matplotlib."""
    process = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_REPORT], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout.splitlines()[-1])
    assert report["printed"] == ""
    assert report["settings_after"] == report["settings_before"]
    assert report["replaced_registrations"] == []
    assert report["imports_matplotlib"] is False


def test_version_is_that_of_the_distribution() -> None:
    try:
        installed = importlib.metadata.version("interdomain")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("interdomain is on the path but not installed")
    assert interdomain.__version__ == installed


def test_py_typed_is_part_of_the_package() -> None:
    assert importlib.resources.files("interdomain").joinpath("py.typed").is_file()


def test_all_is_sorted_and_complete() -> None:
    modules = [name for name in interdomain.__all__ if not name.startswith("_")]
    assert modules == sorted(modules) and "plotting" in modules
    assert all(hasattr(interdomain, name) for name in interdomain.__all__)


# No ladder of isinstance over operators or families: each answers for itself (docs: DESIGN). A
# check of an operator's class belongs into that operator's file in `linalg`, which registers its
# `square_root`; a check of a family's class into the kernel file, the inducing-variable file and
# the covariance file of that family, the one that registers covariances for it. Anywhere else a
# method or a dispatcher takes its place. Abstract classes may be asked for everywhere: they are
# what the families have in common.

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
