"""What `import interdomain` does and does not do, and what the distribution contains."""

import ast
import importlib.metadata
import importlib.resources
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gpflow
import pytest

import interdomain

# GPflow is imported first, so that what TensorFlow and GPflow do to the process is not counted.
IMPORT = """
import gpflow, os, sys
import tensorflow as tf

def registered():
    from gpflow import conditionals, covariances, kullback_leiblers, posteriors
    dispatchers = (
        covariances.Kuu, covariances.Kuf, conditionals.conditional,
        posteriors.get_posterior_class, kullback_leiblers.prior_kl,
    )
    return {(d.name, types): function for d in dispatchers for types, function in d.funcs.items()}

def settings():
    threads = tf.config.threading
    numbers = threads.get_inter_op_parallelism_threads(), threads.get_intra_op_parallelism_threads()
    eager = tf.config.functions_run_eagerly()
    return dict(os.environ), repr(gpflow.config.config()), numbers, eager

def mark(text):
    for stream in (sys.stdout, sys.stderr):
        print(text, file=stream, flush=True)

before, functions, drawing = settings(), registered(), "matplotlib" in sys.modules
mark("imported")
import interdomain
mark("imported")
assert settings() == before
assert functions.items() <= registered().items()
assert drawing or "matplotlib" not in sys.modules
"""


@pytest.mark.slow
def test_import_prints_and_changes_nothing() -> None:
    """No output, no global state, no registration of GPflow, and no matplotlib."""
    process = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    for text in (process.stdout, process.stderr):
        assert text.split("imported\n")[1] == ""


def test_version_is_that_of_the_distribution() -> None:
    try:
        installed = importlib.metadata.version("interdomain")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("interdomain is on the path but not installed")
    assert interdomain.__version__ == installed


def test_py_typed_is_part_of_the_package() -> None:
    assert importlib.resources.files("interdomain").joinpath("py.typed").is_file()


# No ladder of isinstance over operators or families: each answers for itself (docs: DESIGN). A
# check of an operator's class belongs into that operator's file in `linalg`, which registers its
# `square_root`; a check of a family's class into the kernel file, the inducing-variable file and
# the covariance file of that family, the one that registers covariances for it. Anywhere else a
# method or a dispatcher takes its place. Abstract classes may be asked for everywhere: they are
# what the families have in common.

SOURCE = Path(interdomain.__file__).parent
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text())
    for path in SOURCE.rglob("*.py")
}


def concrete(*kinds: type) -> Iterator[type]:
    """Their subclasses that are no abstract classes."""
    for kind in kinds:
        if not inspect.isabstract(kind):
            yield kind
        yield from concrete(*kind.__subclasses__())


FAMILIES = {
    kind.__name__: f"{kind.__module__.removeprefix('interdomain.').replace('.', '/')}.py"
    for kind in concrete(gpflow.kernels.Kernel, gpflow.inducing_variables.InducingVariables)
    if kind.__module__.startswith(("interdomain.kernels.", "interdomain.inducing_variables."))
}
"""Kernels and inducing variables of the library, and the file of each."""
OPERATORS = {
    name: file
    for file, tree in TREES.items()
    for node in tree.body
    if isinstance(node, ast.AnnAssign) and "tf.linalg.LinearOperator" in ast.unparse(node)
    for name in (ast.unparse(node.target), ast.unparse(node).rpartition(".")[2])
}
"""TensorFlow's operators and the names they have here."""


def names(nodes: list[ast.expr]) -> set[str]:
    parts = [part for node in nodes for part in ast.walk(node)]
    of_attributes = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return of_attributes | {part.id for part in parts if isinstance(part, ast.Name)}


def calls(tree: ast.AST, *functions: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(functions):
            yield node


def asked(tree: ast.Module) -> set[str]:
    """What a file asks for with isinstance, issubclass, `type(...) is` or `in`."""
    kinds = [kind for call in calls(tree, "isinstance", "issubclass") for kind in call.args[1:]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(calls(node, "type")):
            kinds += [node.left, *node.comparators]
    return names(kinds)


def registered(tree: ast.Module) -> set[str]:
    return names([kind for call in calls(tree, ".register") for kind in call.args])


def own_files(kind: str) -> set[str]:
    """The files that may ask for a class."""
    if kind not in FAMILIES:
        return {OPERATORS.get(kind, "")}
    own = FAMILIES[kind]
    folder = own.rpartition("/")[0] if own.count("/") > 1 else own  # a subpackage of kernels
    covariances = {file for file in TREES if file.startswith("covariances/")}
    files = {file for file in covariances if kind in registered(TREES[file])}
    return files | {file for file in TREES if file.startswith(folder)}


def test_no_ladders_over_operators_or_families() -> None:
    assert FAMILIES["ArcCosine"] == "kernels/zonal/arc_cosine.py"
    assert "LinearOperatorDiag" in asked(TREES["linalg/diagonal.py"])
    assert "FiniteRank" in asked(TREES["covariances/finite_rank.py"])
    ladders = [
        (file, kind)
        for file, tree in TREES.items()
        for kind in asked(tree)
        if kind in {**FAMILIES, **OPERATORS} or kind.startswith("LinearOperator")
        if kind != "LinearOperator" and file not in own_files(kind)
    ]
    assert not ladders, f"use a method of the class or a dispatcher: {sorted(ladders)}"
