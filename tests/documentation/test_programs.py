"""The programs of README and of the guides run, and print what the pages say."""

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gpflow
import numpy as np
import pytest
from check_shapes import disable_check_shapes

import interdomain

ROOT = Path(__file__).parents[2]

BLOCK = re.compile(
    r"(?P<not_run><!-- not run: [^>]+-->\n)?"
    r"^```python\n(?P<program>.*?)^```$(?:\n\n^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A program, the line of the page where it begins, and its output; None if not given."""

    program: str
    line: int
    output: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks that are run: all but blocks below `<!-- not run: a reason -->`."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        if not found["not_run"]:
            line = text.count("\n", 0, found.start("program"))
            yield Block(found["program"], line, found["output"])


def pages() -> list[Path]:
    """All that are written by hand and have programs to run."""
    written = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    made = {ROOT / "docs" / name for name in ("gallery", "benchmarks", "reference")}
    return [p for p in written if not made & set(p.parents) and any(blocks(p))]


def difference(expected: str, found: str) -> str | None:
    """The first difference between two outputs, or None.

    Texts are compared word by word. Whole numbers and decimals may differ as they do between
    machines: by two units in the last digit that is printed, or by one in a hundred.
    """
    wanted, given = expected.strip().splitlines(), found.strip().splitlines()
    if len(wanted) != len(given):
        return f"{len(wanted)} lines are promised, {len(given)} are printed:\n{found}"
    for one, other in zip(wanted, given, strict=True):
        if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
            return f"promised: {one}\nprinted:  {other}"
        for a, b in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            x, y = float(a.replace(",", "")), float(b.replace(",", ""))
            decimals = len(a.partition(".")[2]) if "e" not in a else 0
            if abs(x - y) > max(2.0 * 10.0**-decimals * bool(decimals), 0.01 * abs(x)):
                return f"promised: {one}\nprinted:  {other}"
    return None


PAGES = {str(page.relative_to(ROOT)): page for page in pages()}

EXAMPLES = ("covariances", "functionals", "inducing_variables", "kernels", "plotting", "transforms")
QUICK = {"README.md", *(f"docs/examples/{name}.md" for name in EXAMPLES)}
"""The pages that train no model, or a small one."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow, id=n) for n in PAGES]
)
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page runs as one program, block by block; an error names the line of the page."""
    # A function that is pickled or traced is looked up in its module.
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGES[name]):
        printed = io.StringIO()
        # Shapes take a tenth of the time, and are checked in all other tests.
        with contextlib.redirect_stdout(printed), disable_check_shapes():
            exec(compile("\n" * block.line + block.program, str(PAGES[name]), "exec"), names)
        if block.output is not None:
            wrong = difference(block.output, printed.getvalue())
            assert wrong is None, f"{name}, the program of line {block.line}: {wrong}"
        else:
            assert not printed.getvalue().strip(), f"{name}, line {block.line}: prints unpromised"


def test_the_change_of_readme_runs() -> None:
    """The lines that the diff adds and keeps, on rows of a small map and with few splines."""
    (change,) = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    kept = "\n".join(line[1:] for line in change.splitlines() if line[0] in " +")
    X = np.random.default_rng(0).uniform(size=(500, 2))
    Y = np.sin(9 * X[:, :1]) * X[:, 1:]
    names = {"idm": interdomain, "gpflow": gpflow, "X": X, "Y": Y, "X_new": X[:5]}
    with disable_check_shapes():
        exec(kept.replace("[260, 220]", "[9, 8]"), names)
    np.testing.assert_allclose(names["mean"], Y[:5], atol=0.1)


def test_pages_are_found() -> None:
    assert {"docs/start.md", "docs/guides/serving.md", *QUICK} <= set(PAGES)
