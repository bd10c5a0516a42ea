"""How many small mistakes in the source the tests would notice.

    make mutants                                records which test runs which line, then 120 mutants
    python tools/mutants.py --only survived     those again, with the tests as they are now

A mutant is the source with one mistake: a sign, a factor, an off-by-one, two arguments swapped, a
term or a flag dropped. It is killed if one of the tests that run the changed line fails: one that
never runs it cannot notice. (Where a fixture runs it, those are all tests of the fixture's file. A
function whose results are cached is run by the first test that needs it, and a line by a process
that a test starts is run by none: such survivors are looked at by hand.)
TensorFlow is imported once, and each mutant is tested in a fork of a process that has not used it
yet. The published tools start Python anew for each mutant (cosmic-ray), or leave out decorated
functions (mutmut), which are most of this library.
"""

from __future__ import annotations

import argparse
import ast
import collections
import itertools
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import coverage
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    *("core", "families", "linalg", "models", "posteriors"),
    *("regression", "training"),
)
SECONDS = 900
# By pytest's exit status, which is 2 or 4 where a file of tests cannot be imported with the mutated
# source, and by the signal that ends a process after so many seconds.
OUTCOMES = {0: "survived", 1: "killed", 2: "killed", 4: "killed", -9: "too long"}
FLIPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
SILENT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.FunctionDef, ast.ClassDef, ast.AnnAssign)
MESSAGES = {"ValueError", "TypeError", "warn", "Argument", "cast"}


class Mutant(NamedTuple):
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    before: str
    after: str

    def source(self, text: str) -> str:
        """The text of the file with the mistake; columns count bytes, as in the syntax tree."""
        lines = text.splitlines(keepends=True)
        first, last = lines[self.line - 1].encode(), lines[self.end_line - 1].encode()
        lines[self.line - 1 : self.end_line] = [
            first[: self.column].decode() + f"({self.after})" + last[self.end_column :].decode()
        ]
        return "".join(lines)


def mistakes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The kinds of mistakes that could be made at a node, and what would stand there."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in FLIPS and not texts(left, right):
            kind = "sign" if isinstance(op, (ast.Add, ast.Sub)) else "factor"
            yield kind, ast.BinOp(left, FLIPS[type(op)](), right)
            yield ("dropped term" if kind == "sign" else "dropped factor"), left
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", operand
        case ast.Constant(value) if type(value) is float and value not in (0.0, 1.0):
            yield "factor", ast.Constant(2 * value)
        case ast.Constant(value) if type(value) is int:
            yield "off by one", ast.Constant(value + 1)
        case ast.Compare(left, [op], [right]) if type(op) in BOUNDS:
            yield "off by one", ast.Compare(left, [BOUNDS[type(op)]()], [right])
        case ast.Call(function, [first, second, *rest], keywords) if not texts(first, second):
            if ast.dump(first) != ast.dump(second) and not isinstance(second, ast.Starred):
                swapped = ast.Call(function, [second, first, *rest], keywords)
                yield "swapped arguments", swapped
        case ast.Call(function, arguments, keywords):
            for k, keyword in enumerate(keywords):
                if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
                    others = keywords[:k] + keywords[k + 1 :]
                    yield "dropped flag", ast.Call(function, arguments, others)


def texts(*nodes: ast.expr) -> bool:
    """Whether one of them is text or a list, whose sums are no arithmetic."""
    kinds = (ast.JoinedStr, ast.List, ast.Tuple, ast.Starred, ast.ListComp)
    return any(
        isinstance(node, kinds) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in nodes
    )


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """What a function computes with: no messages, no signatures, no inner functions' decorators."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            for statement in child.body:
                yield from walk(statement)
        elif not isinstance(child, SILENT) and not is_message(child):
            yield from walk(child)


def is_message(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return name in MESSAGES or name.endswith("error")


def mutants_of(path: Path) -> Iterator[Mutant]:
    text = path.read_text()
    file = path.relative_to(ROOT / "src").as_posix()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen = set()
    for function in functions:
        if function.name.startswith(("__repr", "_repr")):
            continue
        for statement in function.body:
            for node in walk(statement) if not isinstance(statement, SILENT) else ():
                for kind, replacement in mistakes(node):
                    after = ast.unparse(ast.fix_missing_locations(replacement))
                    before = ast.get_source_segment(text, node) or ""
                    place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                    if (place, after) not in seen:
                        seen.add((place, after))
                        yield Mutant(file, *place, kind, " ".join(before.split()), after)


class Reach:
    """The tests that run a line, from a coverage file with a context for each test."""

    def __init__(self, path: Path) -> None:
        self.data = coverage.CoverageData(str(path))
        self.data.read()
        self.files = {name.split("/src/")[-1]: name for name in self.data.measured_files()}
        contexts = {context.rpartition("|")[0] for context in self.data.measured_contexts()}
        self.tests_of_file: dict[str, list[str]] = collections.defaultdict(list)
        for test in sorted(contexts - {""}):
            self.tests_of_file[test.split("::")[0]].append(test)

    def tests(self, file: str, first: int, last: int) -> list[str]:
        lines = self.data.contexts_by_lineno(self.files[file]) if file in self.files else {}
        found: dict[str, None] = {}
        for line in range(first, last + 1):
            for context in sorted(lines.get(line, [])):
                test, _, phase = context.rpartition("|")
                if test and phase != "run":
                    found |= dict.fromkeys(self.tests_of_file[test.split("::")[0]])
                elif test:
                    found[test] = None
        return list(found)


def choose(number: int, seed: int) -> list[Mutant]:
    """As many of each package and, within it, of each kind of mistake as can be."""
    rng, chosen = random.Random(seed), []
    for k, package in enumerate(PACKAGES):
        paths = sorted((ROOT / "src/interdomain" / package).rglob("*.py"))
        kinds = collections.defaultdict(list)
        for mutant in (mutant for path in paths for mutant in mutants_of(path)):
            kinds[mutant.kind].append(mutant)
        count = number // len(PACKAGES) + (k < number % len(PACKAGES))
        shuffled = [rng.sample(group, len(group)) for group in kinds.values()]
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*shuffled))
        chosen += list(itertools.islice(filter(None, in_turn), count))
    return chosen


def test_in_fork(mutant: Mutant, tests: list[str], tests_root: Path, log: str) -> None:
    """In a process of its own: the mutated source, the tests, an exit status of pytest."""
    with open(log, "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / mutant.file
        path.write_text(mutant.source(path.read_text()))
        os.environ["PYTHONPATH"] = str(source)
        sys.path.insert(0, str(source))
        sys.path.insert(1, str(tests_root))
        sys.dont_write_bytecode = True
        os.chdir(tests_root)
        listed = Path(folder) / "tests.txt"
        listed.write_text("\n".join(tests))
        import pytest

        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        status = pytest.main([*options, f"@{listed}"])
        sys.stdout.flush()
        shutil.rmtree(folder)
    os._exit(int(status))


class Run(NamedTuple):
    mutant: Mutant
    tests: list[str]
    process: multiprocessing.process.BaseProcess
    log: str
    begun: float


def outcome(run: Run) -> dict[str, object]:
    found = [line.split(" - ")[0] for line in Path(run.log).read_text().splitlines()]
    by = next((line for line in found if line.startswith(("FAILED", "ERROR"))), "")
    status = run.process.exitcode
    return {
        **run.mutant._asdict(),
        "tests": len(run.tests),
        "outcome": OUTCOMES.get(status, "not run"),
        "by": by.partition(" ")[2] or f"exit {status}",
        "seconds": round(time.monotonic() - run.begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage")
    parser.add_argument("--tests-root", type=Path, default=ROOT, help="a checkout with the tests")
    parser.add_argument("--number", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=400, help="tests for each mutant")
    parser.add_argument("--output", type=Path, default=ROOT / "build/mutants.jsonl")
    parser.add_argument("--chosen", type=Path, help="mutants of an earlier output")
    parser.add_argument("--only", help="of these, the ones with this outcome")
    options = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "MPLBACKEND": "Agg"}
    import gpflow  # noqa: F401
    import tensorflow_probability  # noqa: F401

    reach = Reach(options.coverage)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    listed = subprocess.run(command, cwd=options.tests_root, capture_output=True, text=True)
    collected = set(listed.stdout.splitlines())
    if options.chosen or options.only:
        rows = map(json.loads, (options.chosen or options.output).read_text().splitlines())
        fields = Mutant._fields
        waiting = [
            Mutant(**{key: row[key] for key in fields})
            for row in rows
            if options.only in (None, row["outcome"])
        ]
    else:
        waiting = choose(options.number, options.seed)
    output = options.output
    if options.only and not options.chosen:
        output = output.with_stem(output.stem + "_again")
    output.parent.mkdir(exist_ok=True)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    running: list[Run] = []
    context = multiprocessing.get_context("fork")
    with output.open("w") as written, tqdm(total=len(waiting), unit=" mutants") as bar:

        def record(row: dict[str, object]) -> None:
            written.write(json.dumps(row) + "\n")
            written.flush()
            counts[str(row["file"]).split("/")[1], str(row["outcome"])] += 1
            bar.update()

        while waiting or running:
            while waiting and len(running) < options.jobs:
                mutant = waiting.pop(0)
                tests = reach.tests(mutant.file, mutant.line, mutant.end_line)
                tests = [test for test in tests if test in collected]
                if not tests:
                    row = {**mutant._asdict(), "outcome": "survived", "by": "no test runs it"}
                    record(row)
                    continue
                tests = random.Random(0).sample(tests, len(tests))[: options.most]
                log = tempfile.mkstemp(suffix=".log")[1]
                arguments = mutant, tests, options.tests_root.resolve(), log
                process = context.Process(target=test_in_fork, args=arguments)
                process.start()
                running.append(Run(mutant, tests, process, log, time.monotonic()))
            time.sleep(0.2)
            for run in list(running):
                if run.process.is_alive() and time.monotonic() - run.begun < SECONDS:
                    continue
                run.process.kill()
                run.process.join()
                record(outcome(run))
                running.remove(run)
    kinds = ("killed", "survived", "too long", "not run")
    print(f"{'package':14s}" + "".join(f"{kind:>10s}" for kind in kinds))
    for package in PACKAGES:
        print(f"{package:14s}" + "".join(f"{counts[package, kind]:10d}" for kind in kinds))


if __name__ == "__main__":
    main()
