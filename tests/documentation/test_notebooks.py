"""The stored notebooks are those of their sources, small, and short enough to be read."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest

from tests.documentation.pages import ROOT
from tools.short_runs import NUMBERS, shortened
from tools.site.gallery import GROUPS, sources, title_and_summary

SOURCES = {path.stem: path for path in sources()}
STORED = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_LINES, MAX_BYTES = 150, 600_000


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source.strip()) for cell in notebook.cells]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_notebook_is_that_of_its_source_was_executed_and_is_small(path: Path) -> None:
    """`make notebooks NOTEBOOKS=notebooks/<name>.py` executes a changed source again."""
    source = jupytext.read(path.with_suffix(".py"))
    notebook = nbformat.read(path, as_version=4)
    assert cells(notebook) == cells(source)
    assert path.stat().st_size < MAX_BYTES
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in outputs)
    assert not any(out.output_type == "error" for out in outputs)


@pytest.mark.parametrize("name", SOURCES)
def test_source_is_short_and_has_a_title(name: str) -> None:
    text = SOURCES[name].read_text()
    assert text.count("\n") <= MAX_LINES
    title, summary = title_and_summary(jupytext.reads(text, fmt="py:percent"))
    assert title and len(summary) > 20


@pytest.mark.parametrize("name", NUMBERS)
def test_short_runs_name_numbers_of_the_notebook(name: str) -> None:
    text = SOURCES[name].read_text()
    assert shortened(name, text) != text


def test_short_runs_refuse_other_names() -> None:
    with pytest.raises(ValueError, match="NUM_FEATURES"):
        shortened("terrain", "NUM_POINTS = 3\n")


def test_gallery_groups_name_each_notebook_once() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))
