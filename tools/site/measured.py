"""Figures in pages, quoted from the stored results of the benchmarks.

A figure of a page has a comment behind it, which GitHub and the site do not show:

    -0.042<!--measured terrain model=box_1080: trace.-1.nll .3f-->

The comment names a benchmark, entries of the configuration (`null` for an entry that the record
does not have), the path to the figure in the result, and a format of Python. Underscores may stand
for spaces. The format `.1fGiB` writes bytes as GiB.

`python -m tools.site.measured README.md docs/index.md` writes the figures of the named pages;
without names it writes those of every page. A test compares the figures with the records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks._lib.results import RESULTS_FOLDER, ResultFile

COMMENT = re.compile(r"(?P<figure>[-+]?[\d.,]+(?:e[-+]?\d+)?%?)<!--measured (?P<quoted>[^>]+?)-->")
QUOTED = re.compile(
    r"(?P<benchmark>\w+)(?P<entries>(?: \w+=\S+?)*): (?P<path>\S+) (?P<format>[,.\w%]+)"
)


def measured(quoted: str, folder: Path = RESULTS_FOLDER) -> str:
    """The figure that a quotation names.

    :raises ValueError: if the quotation has another form, or does not name exactly one record, or
        its result has no such figure.
    """
    parts = QUOTED.fullmatch(" ".join(quoted.split()))
    if parts is None:
        raise ValueError(
            f"a quotation must be `benchmark entry=value ...: path format`, found {quoted!r}"
        )
    entries = dict(text.split("=", 1) for text in parts["entries"].split())
    records = ResultFile(folder / f"{parts['benchmark']}.jsonl").records()
    found = [record for record in records if _has(record["configuration"], entries)]
    if len(found) != 1:
        raise ValueError(
            f"a quotation must name one record, found {len(found)} for {quoted!r}: "
            f"{[record['configuration'] for record in found[:5]]}"
        )
    value: Any = found[0]["result"]
    for name in parts["path"].split("."):
        try:
            value = _entry(value, name)
        except (KeyError, IndexError, ValueError, TypeError):
            raise ValueError(f"{quoted!r} names no figure: there is no {name!r}") from None
    template = parts["format"]
    if template.endswith("GiB"):
        value, template = value / 2**30, template.removesuffix("GiB")
    return format(value, template)


def _entry(value: Any, name: str) -> Any:
    """An entry of a list or a dictionary; underscores of `name` may stand for spaces."""
    if isinstance(value, list):
        return value[int(name)]
    return value[name] if name in value else value[name.replace("_", " ")]


def _has(configuration: dict[str, Any], entries: dict[str, str]) -> bool:
    """Numbers and lists are compared as JSON, texts as they are; underscores may stand for
    spaces."""
    for name, wanted in entries.items():
        value = configuration.get(name)
        text = value if isinstance(value, str) else json.dumps(value)
        if wanted not in (text, text.replace(" ", "_")):
            return False
    return True


def with_figures(text: str) -> str:
    """A text whose figures before comments are those of the records."""
    return COMMENT.sub(
        lambda found: f"{measured(found['quoted'])}<!--measured {found['quoted']}-->", text
    )


def pages() -> list[Path]:
    """The pages of the repository that quote figures."""
    root = Path(__file__).parents[2]
    written = [*root.glob("*.md"), *root.glob("benchmarks/*.md"), *root.glob("docs/**/*.md")]
    generated = {root / "docs" / name for name in ("gallery", "benchmarks", "reference")}
    return [
        page
        for page in sorted(written)
        if not generated & set(page.parents) and COMMENT.search(page.read_text())
    ]


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        page.write_text(with_figures(page.read_text()))
