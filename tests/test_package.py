"""The effects of `import interdomain`, and the contents of the distribution."""

import ast
import importlib.metadata
import importlib.resources
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gpflow
import pytest
import tensorflow as tf

import interdomain
from interdomain.core.structures import FeatureStructure
from interdomain.models.rows_model import RowsModel
from interdomain.sums.protocol import Sums
from tests.workers import UNCHECKED

ROOT = Path(__file__).parents[1]

# GPflow is imported first, so that what TensorFlow and GPflow do to the process is not counted.
IMPORT = f"""{UNCHECKED}
import gpflow, os, sys
import tensorflow as tf

def registered():
    from gpflow import conditionals, covariances, kullback_leiblers, posteriors
    dispatchers = (
        covariances.Kuu, covariances.Kuf, conditionals.conditional,
        posteriors.get_posterior_class, kullback_leiblers.prior_kl,
    )
    return {{(d.name, types): function for d in dispatchers for types, function in d.funcs.items()}}

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
assert "gpflux" not in sys.modules
"""


@pytest.mark.slow
def test_import_prints_and_changes_nothing() -> None:
    """No output, no global state, no registration of GPflow, and no matplotlib."""
    arguments = [sys.executable, "-c", IMPORT]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    for text in (process.stdout, process.stderr):
        assert text.split("imported\n")[1] == ""


def test_links_of_the_description_follow_the_url_of_the_repository() -> None:
    """tools/metadata.py makes README's relative links absolute once there is a URL."""
    pytest.importorskip("hatchling")
    from tools.metadata import absolute_links

    text = (ROOT / "README.md").read_text()
    found = re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)
    absolute = absolute_links(text, "https://example.org/project")
    assert len(found) > 10 and not re.search(r"\]\((?!https?:|#)", absolute)
    for link in found:
        way = "raw" if link.endswith(".png") else "blob"
        assert f"](https://example.org/project/{way}/main/{link})" in absolute


def test_version_is_that_of_the_distribution() -> None:
    try:
        installed = importlib.metadata.version("interdomain")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("interdomain is on the path but not installed")
    assert interdomain.__version__ == installed


def test_py_typed_is_part_of_the_package() -> None:
    assert importlib.resources.files("interdomain").joinpath("py.typed").is_file()


# No ladder of isinstance over operators or families: each answers for itself (docs: DESIGN). A
# check of an operator's class belongs into `linalg`; a check of a family's class to the kernels and
# the inducing variables. Anywhere else a method takes its place. Abstract classes may be asked for
# everywhere: they are what the families have in common. `sampling` has a table of priors, and pairs
# them with features.

SOURCE = Path(interdomain.__file__).parent
FILES = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}


def concrete(*kinds: type) -> Iterator[str]:
    """Names of the library's subclasses that are no abstract classes."""
    for kind in kinds:
        if not inspect.isabstract(kind) and kind.__module__.startswith("interdomain."):
            yield kind.__name__
        yield from concrete(*kind.__subclasses__())


def calls(tree: ast.AST, *functions: str) -> list[ast.Call]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in found if ast.unparse(call.func) in functions]


def asked(tree: ast.Module) -> set[str]:
    """The classes that a file checks with isinstance, issubclass, `type(...) is` or `in`."""
    kinds = [kind for call in calls(tree, "isinstance", "issubclass") for kind in call.args[1:]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and calls(node, "type"):
            kinds += [node.left, *node.comparators]
    return {name for kind in kinds for name in re.findall(r"\w+", ast.unparse(kind))}


def test_no_ladders_over_operators_or_families() -> None:
    families = set(concrete(gpflow.kernels.Kernel, gpflow.inducing_variables.InducingVariables))
    operators = {name for name in dir(tf.linalg) if name.startswith("LinearOperator")}
    operators |= set(concrete(interdomain.linalg.StructuredOperator))
    operators -= {"LinearOperator"}
    assert "ArcCosine" in families and "FiniteRank" in asked(TREES["core/finite_rank.py"])
    assert {"Diagonal", "LinearOperatorDiag"} <= operators
    assert {"WaveSums", "SplineSums"} <= set(concrete(Sums))
    # Annexes ask for their own.
    homes = [(families, ("core/", "families/", "sampling/", "tables/"))]
    homes += [(operators, ("linalg/",))]
    # A model holds sums over rows, whichever they are, and `fit` holds a model.
    homes += [({*concrete(Sums), *concrete(FeatureStructure)}, ("sums/",))]
    homes += [(set(concrete(RowsModel)), ("models/", "tables/", "estimators/"))]
    ladders = [
        (file, kind)
        for kinds, folders in homes
        for file, tree in TREES.items()
        for kind in asked(tree) & kinds
        if not file.startswith(folders)
    ]
    assert not ladders, f"use a method of the class or a dispatcher: {sorted(ladders)}"
