"""No ladder of isinstance over operators or families: each answers for itself (docs: DESIGN).

The source is read, not run. A check of an operator's class belongs into that operator's file in
`linalg`, which registers its `square_root`; a check of a family's class into the kernel file, the
inducing-variable file and the covariance file of that family, the one that registers covariances
for it. Anywhere else a method or a dispatcher takes its place. Abstract classes may be asked for
everywhere: they are what the families have in common.
"""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import gpflow

import interdomain

SOURCE = Path(interdomain.__file__).parent

BASES = (gpflow.kernels.Kernel, gpflow.inducing_variables.InducingVariables)


def _family_classes() -> dict[str, str]:
    """The concrete kernels and inducing variables of the library, and the file of each."""
    found: dict[str, str] = {}
    for package in (interdomain.kernels, interdomain.inducing_variables):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for name, kind in vars(import_module(module.name)).items():
                if (
                    inspect.isclass(kind)
                    and kind.__module__ == module.name
                    and issubclass(kind, BASES)
                    and not inspect.isabstract(kind)
                ):
                    found[name] = module.name.removeprefix("interdomain.").replace(".", "/") + ".py"
    return found


def _trees() -> dict[str, ast.Module]:
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text())
        for path in sorted(SOURCE.rglob("*.py"))
    }


def _last_name(node: ast.expr) -> str:
    """`LinearOperatorDiag` of `tf.linalg.LinearOperatorDiag`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _bindings(tree: ast.Module) -> dict[str, ast.expr]:
    """What names of the module stand for: assignments and `import A as B`."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [alias for alias in node.names if alias.asname]
            found |= {alias.asname: ast.Name(alias.name) for alias in names if alias.asname}
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            found[_last_name(statement.target)] = statement.value
        elif isinstance(statement, ast.Assign):
            found |= {_last_name(target): statement.value for target in statement.targets}
    return found


def _classes(node: ast.expr, bindings: dict[str, ast.expr], depth: int = 0) -> Iterator[str]:
    """The classes in the second argument of isinstance: one, a tuple, a union, a name for those."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for element in node.elts:
            yield from _classes(element, bindings, depth)
    elif isinstance(node, ast.BinOp):
        yield from _classes(node.left, bindings, depth)
        yield from _classes(node.right, bindings, depth)
    elif isinstance(node, ast.Name) and node.id in bindings and depth < 3:
        yield from _classes(bindings[node.id], bindings, depth + 1)
    else:
        yield _last_name(node)


def _is_type_of(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == "type" and len(node.args) == 1


def asked_classes(tree: ast.Module, elsewhere: dict[str, ast.expr]) -> set[str]:
    """The classes that a module asks for with isinstance, issubclass, `type(...) is` or a case.

    :param elsewhere: What names that it may import stand for.
    """
    bindings = elsewhere | _bindings(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in ("isinstance", "issubclass"):
            found.update(_classes(node.args[1], bindings))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is_type_of(side) for side in sides):
                for side in sides:
                    found.update(_classes(side, bindings))
        elif isinstance(node, ast.MatchClass):
            found.update(_classes(node.cls, bindings))
    return found


def registered_classes(
    tree: ast.Module, elsewhere: dict[str, ast.expr], function: str | None = None
) -> set[str]:
    """The classes in `@<function>.register(...)`; of any function by default."""
    bindings = elsewhere | _bindings(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "register" and function in (None, _last_name(node.func.value)):
                for argument in node.args:
                    found.update(_classes(argument, bindings))
    return found


def _operator_names(trees: dict[str, ast.Module]) -> dict[str, ast.expr]:
    """Names bound to operators in linalg, such as `LowRankUpdate`."""
    found: dict[str, ast.expr] = {}
    for file, tree in trees.items():
        if file.startswith("linalg/"):
            for name, value in _bindings(tree).items():
                if any(kind.startswith("LinearOperator") for kind in _classes(value, {})):
                    found[name] = value
    return found


def own_files(name: str, trees: dict[str, ast.Module], families: dict[str, str]) -> set[str]:
    """The files that may ask for a class."""
    operators = _operator_names(trees)
    if name in families:
        own = families[name]
        files = {own}
        if own.count("/") > 1:  # a subpackage of kernels
            files |= {file for file in trees if file.startswith(own.rpartition("/")[0] + "/")}
        covariances = [file for file in trees if file.startswith("covariances/")]
        return files | {f for f in covariances if name in registered_classes(trees[f], operators)}
    return {
        file
        for file, tree in trees.items()
        if file.startswith("linalg/") and name in registered_classes(tree, operators, "square_root")
    }


def ladders(trees: dict[str, ast.Module], families: dict[str, str]) -> set[tuple[str, str]]:
    """(file, class) of all that are asked for outside of their own files."""
    operators = _operator_names(trees)
    return {
        (file, name)
        for file, tree in trees.items()
        for name in asked_classes(tree, operators)
        if (name in families or name.startswith("LinearOperator"))
        and file not in own_files(name, trees, families)
    }


def test_no_ladders_over_operators_or_families() -> None:
    found = ladders(_trees(), _family_classes())
    assert not found, f"use a method of the class or a dispatcher: {sorted(found)}"


def test_ladders_are_seen_and_own_files_are_none() -> None:
    """Whatever the form of asking, so that the test above looks at something."""
    families, trees = _family_classes(), _trees()
    assert families["ArcCosine"] == "kernels/zonal/arc_cosine.py"
    assert "ZonalKernel" not in families
    assert own_files("LinearOperatorDiag", trees, families) == {"linalg/diagonal.py"}
    assert "covariances/spherical_harmonics.py" in own_files("SphericalHarmonics", trees, families)
    trees = {"linalg/diagonal.py": ast.parse("Diagonal = tf.linalg.LinearOperatorDiag")}
    for source in (
        "isinstance(x, Kernel | tf.linalg.LinearOperatorDiag)",
        "KINDS = (Kernel, Diagonal)\nisinstance(x, KINDS)",
        "type(x) in (Kernel, Diagonal)",
        "match x:\n    case Diagonal():\n        pass",
        "from linalg import Diagonal as Plain\nissubclass(x, Plain)",
    ):
        found = ladders(trees | {"models/some.py": ast.parse(source)}, {})
        assert ("models/some.py", "LinearOperatorDiag") in found, source
