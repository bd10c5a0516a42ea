"""The number of small mistakes in the source that the tests notice: `make mutants`.

A mutant is the source with one mistake: a sign, a factor, an off-by-one, two arguments swapped, a
term or a flag dropped. A mutant is killed if one of the tests that run the changed line fails. If a
fixture runs the line, all tests of the fixture's file count. Look at survivors by hand: this tool
does not see cached results, or processes that a test starts. TensorFlow is imported once, and each
mutant is tested in a fork. Published tools start Python again for each mutant (cosmic-ray), or
leave out decorated functions (mutmut), which are most of this library.
"""

from __future__ import annotations

import argparse
import ast
import collections
import itertools
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
chain = itertools.chain.from_iterable
JOBS, SECONDS, MOST_TESTS = 2, 900, 400  # forks at a time; limits of one mutant
# Outcomes by exit status of pytest (2 or 4: the source cannot be imported) or by signal (-9).
OUTCOMES = {0: "survived", 1: "killed", 2: "killed", 4: "killed", -9: "too long"}
FLIPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.Starred, ast.ListComp)
SILENT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.FunctionDef, ast.ClassDef, ast.AnnAssign)
MESSAGES = ("ValueError", "TypeError", "error", "value_error", "warn", "Argument", "cast")


class Mutant(NamedTuple):
    file: str
    place: tuple[int, int, int, int]  # first line and column, last line and column
    kind: str
    before: str
    after: str

    def source(self, text: str) -> str:
        """The text of the file with the mistake; columns count bytes, as in the syntax tree."""
        lines, (first, start, last, end) = text.encode().splitlines(keepends=True), self.place
        changed = lines[first - 1][:start] + f"({self.after})".encode() + lines[last - 1][end:]
        return b"".join([*lines[: first - 1], changed, *lines[last:]]).decode()


def mistakes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The kinds of mistakes at a node, and the expression that replaces the node."""
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
            if ast.dump(first) != ast.dump(second):
                yield "swapped arguments", ast.Call(function, [second, first, *rest], keywords)
        case ast.Call(function, arguments, keywords):
            for k, keyword in enumerate(keywords):
                if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
                    others = keywords[:k] + keywords[k + 1 :]
                    yield "dropped flag", ast.Call(function, arguments, others)


def texts(*nodes: ast.expr) -> bool:
    """Whether one of the nodes is text or a list, whose sums are not arithmetic."""
    parts = [*nodes, *(getattr(node, "value", None) for node in nodes)]
    return any(isinstance(part, (str, *TEXTS)) for part in parts)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute: no messages, no signatures, no decorators of inner functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        name = ast.unparse(getattr(child, "func", child)).rpartition(".")[2]
        if isinstance(child, ast.FunctionDef):
            yield from chain(map(walk, child.body))
        elif not isinstance(child, SILENT) and name not in MESSAGES:
            yield from walk(child)


def mutants_of(path: Path) -> list[Mutant]:
    text, found = path.read_text(), dict[Mutant, None]()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef) or "repr" in function.name:
            continue
        for node in chain(walk(part) for part in function.body if not isinstance(part, SILENT)):
            for kind, replacement in mistakes(node):
                after = ast.unparse(ast.fix_missing_locations(replacement))
                before = " ".join((ast.get_source_segment(text, node) or "").split())
                place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                file = path.relative_to(ROOT / "src").as_posix()
                found[Mutant(file, place, kind, before, after)] = None
    return list(found)


def choose(number: int, seed: int) -> list[Mutant]:
    """Mutants drawn at random, spread evenly over kinds of mistakes and packages."""
    rng, groups = random.Random(seed), collections.defaultdict(list)
    files = sorted((ROOT / "src/interdomain").rglob("*.py"))
    for mutant in chain(map(mutants_of, files)):
        groups[mutant.file.split("/")[1], mutant.kind].append(mutant)
    shuffled = [rng.sample(group, len(group)) for group in groups.values()]
    rng.shuffle(shuffled)
    in_turn = chain(itertools.zip_longest(*shuffled))
    return list(itertools.islice(filter(None, in_turn), number))


def tests_of(data: coverage.CoverageData, mutant: Mutant) -> list[str]:
    """The tests that run the lines of a mutant, or the files of fixtures that run them. At most
    `MOST_TESTS` are drawn at random. The coverage data have a context for each test."""
    file = next((name for name in data.measured_files() if name.endswith(mutant.file)), "")
    lines, found = data.contexts_by_lineno(file) if file else {}, set[str]()
    for line in range(mutant.place[0], mutant.place[2] + 1):
        for test, _, phase in (context.rpartition("|") for context in lines.get(line, [])):
            found.add(test if phase == "run" else test.partition("::")[0])
    chosen = sorted(found - {""})
    return random.Random(0).sample(chosen, len(chosen))[:MOST_TESTS]


def test_in_fork(mutant: Mutant, tests: list[str], log: str) -> None:
    """Test a mutant in a process of its own, which exits with the status of pytest."""
    import pytest

    if not tests:
        os._exit(0)
    for stream in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), stream)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / mutant.file
        path.write_text(mutant.source(path.read_text()))
        os.environ["PYTHONPATH"] = str(source)
        sys.path[:0] = [str(source), str(ROOT)]
        options = "-xq --tb=line -p no:cacheprovider -p no:xdist".split()
        status = pytest.main([*options, *tests])
    sys.stdout.flush()
    os._exit(int(status))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--number", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "MPLBACKEND": "Agg"}
    import gpflow  # noqa: F401
    import tensorflow_probability  # noqa: F401

    waiting = choose(options.number, options.seed)
    data, running = coverage.CoverageData(str(ROOT / ".coverage")), dict[Any, Any]()
    data.read()
    counts, context = collections.Counter[Any](), multiprocessing.get_context("fork")
    with tqdm(total=len(waiting), unit=" mutants") as bar:
        while waiting or running:
            while waiting and len(running) < JOBS:
                mutant = waiting.pop(0)
                arguments = mutant, tests_of(data, mutant), tempfile.mkstemp(".log")[1]
                process = context.Process(target=test_in_fork, args=arguments)
                process.start()
                running[process] = *arguments, time.monotonic()
            time.sleep(0.2)
            for process, (mutant, tests, log, begun) in list(running.items()):
                if process.is_alive() and time.monotonic() - begun < SECONDS:
                    continue
                process.kill()
                process.join()
                del running[process]
                result = OUTCOMES.get(process.exitcode, "not run")
                if result != "killed":
                    place = f"{mutant.file}:{mutant.place[0]}, {len(tests)} tests, {log}"
                    tqdm.write(f"{result}: {mutant.before} -> {mutant.after} ({place})")
                counts[mutant.file.split("/")[1], result] += 1
                bar.update()
    for (package, result), count in sorted(counts.items()):
        print(f"{package:14s} {result:10s} {count:4d}")


if __name__ == "__main__":
    main()
