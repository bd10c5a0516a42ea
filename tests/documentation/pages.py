"""The programs of a page of Markdown, and what the page says they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    """Those that are run: all but those below `<!-- not run: a reason -->`."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        if not found["not_run"]:
            yield Block(
                found["program"], text.count("\n", 0, found.start("program")), found["output"]
            )


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
