"""A check of the English of docstrings, comments and pages, after the rules of CONTRIBUTING.md.

`python tools/words.py` reads the repository, or the files that are named. The check prints each
docstring that opens with a word that names no subject, and each forbidden word with its
replacement. `--long` prints sentences of more than 25 words as well.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

OPENINGS = re.compile(r"(Of|Those|These|As|That|The same|What|Which|Likewise|Beside|Others)\b")

REPLACEMENTS = {
    r"go(es|ing)? on (with|from|where)": "resume, continue",
    r"anew": "again",
    r"once more": "again",
    r"likewise": "the statement itself",
    r"the (former|latter)": "the noun",
    r"(is|are) not zero (in|at|on|for)": "nonzero in only ...",
    r"(is|are|lies|lie) beyond": "exceeds, is outside of",
    r"refused is": "the subject first",
    r"hitherto|whereof|thereof|therewith|wherein": "a plain word",
    r"at hand": "available, in memory",
    r"of (this|that) kind": "the noun",
}
"""Forbidden words, and what to write in their place."""

FORBIDDEN = re.compile(
    "|".join(rf"(?P<w{i}>\b({words})\b)" for i, words in enumerate(REPLACEMENTS)), re.IGNORECASE
)
LONGEST = 25
NO_PROSE = re.compile(r"^```.*?^```|<!--.*?-->", re.M | re.S)
TABLE = re.compile(r"^\|.*$", re.M)
ONE_WORD = re.compile(r"``.*?``|`[^`]*`|\$.*?\$|:\w+(:\w+)?:`[^`]*`|\[([^\]]*)\]\([^)]*\)", re.S)


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring of a Python file, attributes' included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each comment of a Python file; adjacent lines are joined."""
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("# %%"):
            if lines and token.start[0] != first + len(lines):
                yield first, "\n".join(lines)
                lines = []
            first = first if lines else token.start[0]
            lines.append(token.string.lstrip("#").strip())
    if lines:
        yield first, "\n".join(lines)


def prose(text: str) -> str:
    """A page without programs and comments; the lines keep their numbers."""
    return NO_PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)


def complaints(path: Path, *, long: bool = False) -> Iterator[tuple[int, str]]:
    """The line of each fault of a file, and the fault."""
    text = path.read_text()
    if path.suffix == ".py":
        parts = [*docstrings(text), *comments(text)]
        for line, part in docstrings(text):
            if opening := OPENINGS.match(part.strip()):
                yield line, f"a docstring must name its subject first, found {opening[0]!r}"
    else:
        parts = [(1, prose(text))]
    for line, part in parts:
        for match in FORBIDDEN.finditer(part):
            number = next(i for i, _ in enumerate(REPLACEMENTS) if match[f"w{i}"])
            remedy = list(REPLACEMENTS.values())[number]
            yield line + part.count("\n", 0, match.start()), f"{match[0]!r}: write {remedy}"
        if long:
            yield from _long_sentences(line, TABLE.sub("", part))


def _long_sentences(line: int, part: str) -> Iterator[tuple[int, str]]:
    for paragraph in re.finditer(r"(?:.+\n?)+", part):
        start = line + part.count("\n", 0, paragraph.start())
        for item in re.split(r"^\s*(?:[-*#>]|\d+\.|:\w+ ?\w*:) ", paragraph[0], flags=re.M):
            for sentence in re.split(r"(?<=[.!?:;])\s+", ONE_WORD.sub("code", item)):
                count = len(re.findall(r"[^\W_]\S*", sentence))
                if count > LONGEST:
                    yield start, f"{count} words: {' '.join(sentence.split())[:90]} ..."


def files() -> list[Path]:
    """The Python files and the pages that git tracks, except this file."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.splitlines() if name != "tools/words.py"]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def main(arguments: list[str]) -> int:
    """Print the faults; the exit status is 1 if there is one."""
    named = [Path(name) for name in arguments if name != "--long"]
    count = 0
    for path in named or files():
        for line, complaint in sorted(complaints(path, long="--long" in arguments)):
            print(f"{path}:{line}: {complaint}")
            count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
