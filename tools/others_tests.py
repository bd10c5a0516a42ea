"""GPflow's, GPflux's and Trieste's own tests, with inducing variables of this library.

    PYTHONPATH=src python tools/others_tests.py --gpflow gpflow-2.11.2.tar.gz \
        --gpflux CLONE@v0.4.4 --trieste CLONE@v4.2.1 --trieste-python VENV/bin/python

A source is a folder with `tests`, an sdist, or a git repository with `@` and a revision. Trieste
pins TensorFlow, so it may have an interpreter of its own; that one needs this library's
dependencies, and takes the library from here. Each suite runs once for each of these modes:

- alone: without this library. What fails here is not run again.
- imported: interdomain is imported first, which registers all of its covariances and posteriors.
- points: `InducingPoints`, and arrays that models wrap, are `OrbitInducingPoints` of a set with one
  point, the kernel's own. Their numbers are those of points, so every test should hold. The
  wrappers for several outputs are the library's.
- projections: those tests that used these, with sums of f over two places, a family that is
  written here. It has no place `Z`, as most families, so a test that says what u is at a place
  cannot hold.

The file is also the plugin of pytest that does this, so it imports nothing large at its top.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

MODES = ("alone", "imported", "points", "projections")
HERE = Path(__file__).resolve().parent
SECONDS = 900  # for one run of one suite
SECONDS_OF_A_TEST = 30


class Suite(NamedTuple):
    """What is run of a project's tests."""

    tests: tuple[str, ...]
    packages: tuple[str, ...]  # imported before anything is replaced: their checks see points
    builders: tuple[str, ...]  # modules of theirs that make inducing points


CONDITIONALS = ("broadcasted_conditionals", "conditionals", "multioutput")
MODELS = (
    *("svgp", "svgp_posterior", "sgpr", "sgpr_posterior", "cglb", "methods", "model_predict"),
    *("variational", "training_mixins"),
)
TRIESTE = ("builders", "models", "sampler", "inducing_point_selectors")
SUITES = {
    "gpflow": Suite(
        (
            *(f"gpflow/conditionals/test_{name}.py" for name in CONDITIONALS),
            *("gpflow/covariances", "gpflow/optimizers/test_natural_gradient.py"),
            *(f"gpflow/models/test_{name}.py" for name in MODELS),
            *(f"gpflow/test_{name}.py" for name in ("inducing_variables", "kullback_leiblers")),
            *("gpflow/posteriors", "gpflow/test_base_training.py"),
            *(f"integration/test_{name}.py" for name in ("method_equivalence", "dynamic_shapes")),
        ),
        ("gpflow",),
        ("gpflow.models.util",),
    ),
    "gpflux": Suite(
        (
            *(f"gpflux/layers/test_{name}_layer.py" for name in ("gp", "dedup_trackable")),
            *("gpflux/models", "gpflux/sampling", "gpflux/architectures"),
            *("gpflux/test_helpers.py", "gpflux/test_runtime_checks.py"),
        ),
        ("gpflux",),
        ("gpflow.models.util", "gpflux.helpers"),
    ),
    "trieste": Suite(
        (
            *(f"unit/models/gpflow/test_{name}.py" for name in TRIESTE),
            *(f"unit/models/gpflux/test_{name}.py" for name in ("builders", "models")),
        ),
        ("trieste.models.gpflow", "trieste.models.gpflux"),
        ("gpflow.models.util", "gpflux.helpers"),
    ),
}

# Why a test cannot hold: a pattern for "test: message", and the reason. The first one counts.
SEVERAL = (
    "one inducing variable with a kernel of several outputs is shared by the latent GPs here, with "
    "a q of M rows; GPflow's points are the values of all outputs, with a q of M P rows"
)
REASONS: tuple[tuple[str, str], ...] = (
    (
        "no tests have been registered for the following",
        "wants GPflow's tests to have seen every class of posteriors of the process, ours too",
    ),
    (r"_independent_mo[kf]: |_vs_independent_mok: |fully_correlated|_model_factory4", SEVERAL),
    ("one inducing variable, several outputs", SEVERAL),
    (
        "Arrays are not equal.*e-1[456] Max relative",
        "wants two routes to agree bit for bit: `gpflow.conditionals.conditional` takes GPflow's "
        "own for several outputs, which differs in the last digits",
    ),
    (
        "test_inducing_points_with_variable_shape",
        "the number of inducing variables is fixed when they are made",
    ),
    (
        r"test_inducing_variables.py::test_shape",
        "the shape of inter-domain variables leaves the number of columns open",
    ),
    (
        "object has no attribute 'Z'|test_dedup_trackable_layer.py::test_parameter_names",
        "asks for the places `Z` of inducing points, which these do not have",
    ),
    (
        r"test_base_conditional_vs_ref|inducing_equivalence|test_equivalence_vgp_and_",
        "says what q is of values at places; projections have another q for the same function",
    ),
    (r"more than \d+ s of one core", "stopped: it takes longer than a test may"),
)

# --- The plugin of pytest ---------------------------------------------------------------------

calls: collections.Counter[str] = collections.Counter()


def pytest_load_initial_conftests() -> None:
    """Before any of their files is imported."""
    leave_to_tracing()
    mode = os.environ["OTHERS_MODE"]
    if mode == "alone":
        return
    suite = SUITES[os.environ["OTHERS_SUITE"]]
    for package in suite.packages:
        importlib.import_module(package)
    importlib.import_module("interdomain")
    if mode == "imported":
        return
    inducing_variables = importlib.import_module("interdomain").inducing_variables
    posteriors = importlib.import_module("gpflow.posteriors")
    structured = importlib.import_module("interdomain.posteriors.structured").StructuredPosterior
    for value in list(vars(posteriors).values()):
        if isinstance(value, type) and issubclass(value, posteriors.AbstractPosterior):
            # Theirs first ask for the class of a posterior: let them go on to its numbers.
            if not issubclass(structured, value):
                value.register(structured)  # type: ignore[attr-defined]
    ours = {"InducingPoints": stand_ins()[mode]}
    for wrapper in ("SharedIndependentInducingVariables", "SeparateIndependentInducingVariables"):
        ours[wrapper] = getattr(inducing_variables, wrapper)
    makers = ("gpflow.inducing_variables", "gpflow.inducing_variables.multioutput")
    for module in map(importlib.import_module, (*makers, *suite.builders)):
        for name in ours.keys() & vars(module).keys():
            setattr(module, name, ours[name])


def leave_to_tracing() -> None:
    """AutoGraph rewrites the checks of shapes within GPflow's loops, which takes minutes for one
    test. The tests' own functions are still rewritten."""
    from tensorflow.python.autograph.core import config

    packages: tuple[str, ...] = (
        "check_shapes",
        "deprecated",
        "gpflow",
        "gpflux",
        "lark",
        "multipledispatch",
    )
    packages = (*packages, "abc", "contextlib", "functools", "typing", "wrapt")
    rules = tuple(config.DoNotConvert(package) for package in packages)
    config.CONVERSION_RULES = rules + config.CONVERSION_RULES


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Of a function with many cases, a few that are spread over them; or the tests of a list."""
    listed, most = os.environ["OTHERS_ONLY"], int(os.environ["OTHERS_CASES"])
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for item in items:
        groups[item.nodeid.split("[")[0]].append(item.nodeid)
    chosen = set(json.loads(Path(listed).read_text())) if listed else set()
    for cases in () if listed else groups.values():
        few = min(most or len(cases), len(cases))
        chosen.update(cases[place * len(cases) // few] for place in range(few))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def stand_ins() -> dict[str, type]:
    """The classes that take the place of GPflow's points, which count what they are asked."""
    import gpflow
    import tensorflow as tf
    from gpflow.kernels import Kernel, MultioutputKernel

    from interdomain.inducing_variables import InterDomainInducingVariables, OrbitInducingPoints
    from interdomain.kernels import SetKernel
    from interdomain.linalg import Full

    class Singletons(SetKernel):
        """The kernel of f(x) = g(x): g's own, as a sum over a set of one point."""

        point_dim = input_dim = None

        def __init__(self, kernel: Kernel) -> None:
            super().__init__()
            if isinstance(kernel, MultioutputKernel):
                raise ValueError("one inducing variable, several outputs")
            self.base = kernel

        @property
        def point_weights(self) -> tf.Tensor:
            return tf.ones([1], gpflow.default_float())

        @property
        def point_kernel(self) -> Kernel:
            return self.base

        def points(self, X: tf.Tensor) -> tf.Tensor:
            return X[:, None, :]

    class Points(OrbitInducingPoints):
        """Values of g at places, of any kernel."""

        kernels = (Kernel,)

        def num_columns(self, kernel: Kernel) -> int | None:
            return super().num_columns(Singletons(kernel))

        def Kuf(self, kernel: Kernel, X: Any) -> tf.Tensor:
            calls["covariances"] += 1
            return super().Kuf(Singletons(kernel), X)

        def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> Full:
            calls["covariances"] += 1
            return super().Kuu(Singletons(kernel), jitter=jitter)

    class Projections(InterDomainInducingVariables):
        """``u_m = f(z_m) - f(z_{m - 1}) / 2``, of any kernel."""

        def __init__(self, Z: Any, name: str | None = None) -> None:
            super().__init__(name=name)
            self.places = gpflow.Parameter(Z)

        @property
        def num_inducing(self) -> int:
            return int(self.places.shape[0])

        def _sums(self, values: tf.Tensor) -> tf.Tensor:
            calls["covariances"] += 1
            before = tf.concat([tf.zeros_like(values[:1]), values[:-1]], axis=0)
            return values - before / 2

        def Kuf(self, kernel: Kernel, X: Any) -> tf.Tensor:
            return self._sums(Singletons(kernel).base(self.places, X))

        def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> Full:
            half = self._sums(Singletons(kernel).base(self.places))
            matrix = self._sums(tf.transpose(half))
            return Full(matrix + jitter * tf.eye(self.num_inducing, dtype=matrix.dtype))

    return {"points": Points, "projections": Projections}


def pytest_runtest_logstart() -> None:
    """Tests draw random numbers: the same in all modes."""
    import numpy as np
    import tensorflow as tf

    np.random.seed(0)  # noqa: NPY002  (the state that their tests use)
    tf.random.set_seed(0)
    calls.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """An end to a test that takes too long. It is in seconds of the processor, so that it does not
    depend on what else the machine does."""

    def stop(*_: Any) -> NoReturn:
        raise TimeoutError(f"more than {SECONDS_OF_A_TEST} s of one core")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_TEST)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_runtest_logreport(report: Any) -> None:
    ours, seconds = calls.pop("covariances", 0), report.duration
    record(report.nodeid, report, ours=ours, seconds=round(seconds, 2))


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        record(report.nodeid, report, ours=0, seconds=0)


def record(test: str, report: Any, **entries: Any) -> None:
    """One line for each phase of a test, at once: a run that is stopped keeps them."""
    if report.outcome != "passed":
        entries["message"] = message_of(report)
    with open(os.environ["OTHERS_RESULTS"], "a") as lines:
        lines.write(json.dumps({"test": test, "outcome": report.outcome, **entries}) + "\n")


def shortened(text: str) -> str:
    """Both ends of a message: TensorFlow puts the cause at the end."""
    text = " ".join(text.split())
    return text if len(text) < 400 else f"{text[:120]} ... {text[-280:]}"


def message_of(report: Any) -> str:
    """Where a test failed, and with what."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return " ".join(str(report.longrepr).split())[-300:]
    place = "/".join(Path(crash.path).parts[-2:])
    return f"{place}:{crash.lineno}: {shortened(str(crash.message))}"


# --- The program ------------------------------------------------------------------------------


def unpack(source: str, folder: Path) -> str:
    """Put the tests of a source into a folder, and say which they are."""
    name, _, revision = source.partition("@")
    path = Path(name)
    if path.is_file():
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        (root,) = folder.iterdir()
        shutil.move(root / "tests", folder / "tests")
        # Beside the tests would be the package itself, in place of the installed one.
        shutil.rmtree(root)
        described = path.name
    elif revision or not (path / "tests").is_dir():
        git = ["git", "-C", name]
        packed = subprocess.run(
            [*git, "archive", revision or "HEAD", "tests"], check=True, capture_output=True
        )
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        describe = [*git, "describe", "--tags", "--always", revision or "HEAD"]
        described = subprocess.run(describe, check=True, capture_output=True, text=True).stdout
    else:
        shutil.copytree(path / "tests", folder / "tests")
        described = path.name
    # GPflow's sdist leaves this out; without it tests/gpflow would take the name of the package.
    (folder / "tests" / "__init__.py").touch()
    return described.strip()


def run(
    python: str, suite: str, mode: str, folder: Path, cases: int, only: list[str]
) -> tuple[dict[str, dict[str, Any]], float]:
    """What one run of one suite found, in a process of its own, and its seconds.

    :param only: The tests to run; if there are none, up to so many cases of each function.
    """
    done = folder / f"{mode}.seconds"
    if done.exists():
        return outcomes_of(folder / f"{mode}.jsonl"), float(done.read_text())
    start = time.monotonic()
    (folder / "only.json").write_text(json.dumps(only))
    results_file = folder / f"{mode}.jsonl"
    results_file.unlink(missing_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")  # none of the folders above
    source = HERE.parent / "src"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, source))),
        "OTHERS_MODE": mode,
        "OTHERS_CASES": str(cases),
        "OTHERS_ONLY": str(folder / "only.json") if only else "",
        "OTHERS_SUITE": suite,
        "OTHERS_RESULTS": str(results_file),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "MPLBACKEND": "Agg",
        "PYTHONUNBUFFERED": "1",
    }
    tests = [f"tests/{name}" for name in SUITES[suite].tests]
    options = ["-q", "-p", "no:cacheprovider", "-p", Path(__file__).stem, "--tb=short"]
    with (folder / f"{mode}.log").open("w") as log:
        process = subprocess.Popen(
            [python, "-m", "pytest", *options, *tests],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if not results_file.exists():  # pytest could not start
        raise RuntimeError(f"{suite}, {mode}: {(folder / f'{mode}.log').read_text()[-2000:]}")
    done.write_text(str(time.monotonic() - start))
    return outcomes_of(results_file), float(done.read_text())


def outcomes_of(file: Path) -> dict[str, dict[str, Any]]:
    """Each test's outcome, from its phases."""
    found: dict[str, dict[str, Any]] = {}
    for phase in map(json.loads, file.read_text().splitlines()):
        test = found.setdefault(phase["test"], {"outcome": "passed", "ours": 0})
        test["ours"] += phase["ours"]
        if phase["outcome"] != "passed" and test["outcome"] != "failed":
            test |= {"outcome": phase["outcome"], "message": phase["message"]}
    return found


def versions(python: str, suite: str) -> dict[str, str]:
    names = sorted({suite, "gpflow", "gpflux", "tensorflow", "tensorflow-probability", "numpy"})
    code = f"import importlib.metadata as m; print(*map(m.version, {names}))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return dict(zip(names, found.stdout.split(), strict=True))


def reason_of(test: str, message: str) -> str:
    for pattern, reason in REASONS:
        if re.search(pattern, f"{test}: {message}"):
            return reason
    return f"NOT EXPLAINED: {message}"


def listed(title: str, tests: dict[str, str]) -> None:
    """Reasons with the tests that each is of; cases of one function are counted."""
    if not tests:
        return
    print(f"\n{title}\n")
    by_reason: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for test, reason in tests.items():
        by_reason[reason][test.split("[")[0].removeprefix("tests/")] += 1
    for reason, counts in sorted(by_reason.items(), key=lambda item: -item[1].total()):
        names = ", ".join(f"`{name}` {count}" for name, count in sorted(counts.items()))
        print(f"- {counts.total()}: {reason} ({names})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for suite in SUITES:
        parser.add_argument(f"--{suite}", metavar="SOURCE", help=f"{suite}'s tests")
        parser.add_argument(f"--{suite}-python", metavar="PYTHON", default=sys.executable)
    cases = "the most cases that are run of one test function; 0 for all"
    parser.add_argument("--cases", type=int, default=1, help=cases)
    parser.add_argument("--modes", nargs="+", choices=MODES[1:], default=list(MODES[1:]))
    parser.add_argument(
        "--keep", type=Path, help="a folder for logs; runs that it has are not repeated"
    )
    arguments = vars(parser.parse_args())
    table: list[tuple[Any, ...]] = []
    details: list[tuple[str, dict[str, str]]] = []
    unexplained = 0
    with tempfile.TemporaryDirectory() as temporary:
        for suite in (suite for suite in SUITES if arguments[suite]):
            folder = (arguments["keep"] or Path(temporary)).resolve() / suite
            folder.mkdir(parents=True, exist_ok=True)
            described = folder / "tests_of"
            if not described.exists():
                described.write_text(unpack(arguments[suite], folder))
            python = arguments[f"{suite}_python"]
            found = versions(python, suite)
            stated = ", ".join(f"{name} {version}" for name, version in found.items())
            details.append((f"**{suite}**, tests of {described.read_text()}, with {stated}", {}))
            only: list[str] = []
            for mode in ("alone", *arguments["modes"]):
                outcomes, seconds = run(python, suite, mode, folder, arguments["cases"], only)
                count = collections.Counter(entry["outcome"] for entry in outcomes.values())
                failed = {
                    test: entry["message"]
                    for test, entry in outcomes.items()
                    if entry["outcome"] == "failed"
                }
                if mode == "alone":
                    only = [test for test in outcomes if test not in failed]
                    details.append(("Fail alone", failed))
                else:
                    reasons = {test: reason_of(test, why) for test, why in failed.items()}
                    unexplained += sum("NOT EXPLAINED" in why for why in reasons.values())
                    details.append((f"Newly fail, mode {mode}", reasons))
                counts = (len(outcomes), count["passed"], count["failed"], count["skipped"])
                ours = [test for test, entry in outcomes.items() if entry["ours"]]
                only = ours or only  # a test that asks points for nothing need not run again
                table.append((suite, found[suite], mode, *counts, len(ours), f"{seconds:.0f}"))
                print(*table[-1], file=sys.stderr, flush=True)
    titles = ("suite", "version", "mode", "tests", "passed", "failed", "skipped")
    for row in ((*titles, "with ours", "seconds"), ("---",) * 9, *table):
        print("|", " | ".join(map(str, row)), "|")
    for title, tests in details:
        if tests:
            listed(title, tests)
        elif title.startswith("**"):
            print(f"\n{title}")
    return int(unexplained > 0)


if __name__ == "__main__":
    raise SystemExit(main())
