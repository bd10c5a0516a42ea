"""What the site is made from: every public name, every benchmark, every figure that is quoted."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks._lib.results import RESULTS_FOLDER
from tests.documentation.pages import ROOT
from tools.site import benchmark_pages, reference
from tools.site.measured import COMMENT, measured, with_figures

DOCS = ROOT / "docs"
QUOTATIONS = re.compile(r"\{measured\}`([^`]+)`")


@pytest.fixture(scope="module")
def reference_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "reference"
    reference.write(folder, DOCS)
    return folder


def test_every_public_name_has_a_page(reference_folder: Path) -> None:
    for owner, name in reference.public_names():
        text = (reference_folder / owner / f"{name}.rst").read_text()
        assert re.search(rf"^\.\. auto\w+:: {re.escape(name)}$", text, re.MULTILINE)
        assert f"   {name}\n" in (reference_folder / owner / "index.rst").read_text()


def test_every_public_name_has_a_docstring() -> None:
    for owner, name in reference.public_names():
        value = getattr(reference.module(owner), name)
        described = inspect.isclass(value) or inspect.isroutine(value)  # no alias of a type
        assert not described or value.__doc__, f"{owner}.{name} says nothing of itself"


def test_every_public_name_has_an_example() -> None:
    """In its docstring, or in a page or notebook that is run."""
    pages, shown = reference.sources(DOCS), reference.examples(DOCS)
    without = [
        f"{owner}.{name}"
        for owner, name in reference.public_names()
        if (owner, name) not in shown and not reference.has_example(owner, name, pages)
    ]
    assert not without


def test_every_benchmark_has_a_page_with_its_table(tmp_path: Path) -> None:
    benchmark_pages.write(tmp_path / "benchmarks")
    stored = {path.stem for path in RESULTS_FOLDER.glob("*.jsonl")}
    assert stored <= set(BENCHMARKS)
    for name in BENCHMARKS:
        text = (tmp_path / "benchmarks" / f"{name}.md").read_text()
        assert name not in stored or text.count("\n|") > 2, f"{name} shows no table"
        assert benchmark_pages.questions()[name] in text
    shown = "".join(path.read_text() for path in (tmp_path / "benchmarks").glob("*.md"))
    for picture in RESULTS_FOLDER.glob("*.png"):
        assert f"(images/{picture.name})" in shown


def test_every_quoted_figure_is_in_a_record() -> None:
    """The role fails when the site is built, too; this finds it sooner."""
    quoted = [
        text
        for page in DOCS.rglob("*.md")
        if "_build" not in page.parts
        for text in QUOTATIONS.findall(page.read_text())
    ]
    assert len(quoted) > 10
    for text in quoted:
        found = measured(text)
        assert re.search(r"\d", found) or text.endswith(" s"), text  # a name


@pytest.mark.parametrize("path", ["README.md", "benchmarks/README.md"])
def test_figures_on_pages_of_the_repository_are_those_of_the_records(path: str) -> None:
    text = (ROOT / path).read_text()
    assert COMMENT.search(text)
    assert with_figures(text) == text


def test_quotations(tmp_path: Path) -> None:
    lines = [
        {"configuration": {"model": "a", "size": 3}, "result": {"trace": [{"nll": -0.0417}]}},
        {"configuration": {"model": "b"}, "result": {"two words": 2}},
    ]
    (tmp_path / "made.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert measured("made model=a size=3: trace.-1.nll .3f", tmp_path) == "-0.042"
    assert measured("made size=null: two_words d", tmp_path) == "2"
    for wrong, reason in {
        "made: trace.0.nll .3f": "one record",
        "made model=c: trace.0.nll .3f": "one record",
        "made model=a: trace.0.rmse .3f": "no 'rmse'",
        "made model=a trace.0.nll": "must be",
    }.items():
        with pytest.raises(ValueError, match=reason):
            measured(wrong, tmp_path)
