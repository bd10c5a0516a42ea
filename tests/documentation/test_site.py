"""The contents of the site: every public name, every benchmark, every quoted figure."""

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import jupytext
import nbformat
import pytest

import interdomain
from benchmarks.__main__ import BENCHMARKS
from benchmarks._lib.results import RESULTS_FOLDER
from tools.short_runs import NUMBERS, shortened
from tools.site import benchmark_pages, reference
from tools.site.for_the_site import COPIES
from tools.site.gallery import sources, title_and_summary
from tools.site.measured import measured, pages, with_figures
from tools.words import complaints

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


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


def test_every_public_name_has_an_example() -> None:
    """In its docstring, or in a page or notebook that is run."""
    pages, shown = reference.sources(DOCS), reference.examples(DOCS)
    without = [
        f"{owner}.{name}"
        for owner, name in reference.public_names()
        if (owner, name) not in shown and not reference.has_example(owner, name, pages)
    ]
    assert not without, "an example belongs into the docstring, or into docs/examples"


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


WRITTEN = [
    path
    for pattern in ("*.md", ".github/**/*.yml", "benchmarks/*.md", "docs/*.md", "docs/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.parent.name not in ("gallery", "reference") and path.parent != DOCS / "benchmarks"
    if path.parent != DOCS or path.name not in COPIES.values()
]
"""The pages and templates that are written by hand."""


def test_figures_on_pages_are_those_of_the_records() -> None:
    """`python -m tools.site.measured` writes them."""
    quoting = pages()
    assert {ROOT / "README.md", ROOT / "benchmarks/README.md", DOCS / "index.md"} <= set(quoting)
    for page in quoting:
        text = page.read_text()
        assert with_figures(text) == text, page


def test_quotations(tmp_path: Path) -> None:
    lines = [
        {"configuration": {"model": "a", "size": 3}, "result": {"trace": [{"nll": -0.0417}]}},
        {"configuration": {"model": "b"}, "result": {"two words": 2, "bytes": 3 * 2**29}},
    ]
    (tmp_path / "made.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert measured("made model=a size=3: trace.-1.nll .3f", tmp_path) == "-0.042"
    assert measured("made size=null: two_words d", tmp_path) == "2"
    assert measured("made model=b: bytes .1fGiB", tmp_path) == "1.5"
    with pytest.raises(ValueError, match="one record"):
        measured("made: trace.0.nll .3f", tmp_path)


# The pages are plain Markdown, which GitHub shows as the site does: links lead to files of the
# repository and to headings in them, and no Sphinx role or directive stands in the text.

LINK = re.compile(r"\[([^\[\]]*)\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
ROLE = re.compile(r"\{[\w:-]+\}`|^(?:```|:::+)\{", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_are_plain_markdown() -> None:
    for page in (path for path in WRITTEN if path.suffix == ".md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not ROLE.search(page.read_text()), f"{page}: a role or a directive"
        for label, target, anchor in LINK.findall(text):
            path = (page.parent / target).resolve() if target else page
            assert label, f"{page}: the link to {target} has no text"
            assert path.exists(), f"{page} links to {target}, which does not exist"
            if anchor:
                assert anchor in anchors(path), f"{page} links to {target}#{anchor}"


def test_public_names_in_texts_exist() -> None:
    """Each `idm.x.y` in a page, a template, a notebook or a file of the package."""
    texts = [path for path in WRITTEN if path.name != "CHANGELOG.md"]
    texts += [*sources(), *sorted((ROOT / "src").rglob("*.py")), ROOT / "llms.txt"]
    missing = []
    for path in texts:
        for name in re.findall(
            r"(?<![\w./])(?:idm|interdomain)((?:\.[A-Za-z]\w*)+)", path.read_text()
        ):
            value: Any = interdomain
            for part in name.split(".")[1:]:
                value = getattr(value, part, None) or _submodule(value, part)
                if not isinstance(value, (ModuleType, type)):
                    break  # an attribute of an object, which only a program can make
            if value is None:
                missing.append(f"{path.relative_to(ROOT)}: idm{name}")
    assert not missing


def _submodule(value: Any, name: str) -> ModuleType | None:
    """The module `name` of a package; None if there is no such module."""
    if hasattr(value, "__path__") and find_spec(f"{value.__name__}.{name}"):
        return import_module(f"{value.__name__}.{name}")
    return None


# The stored notebooks are those of their sources, small, and short enough to be read.

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
    with pytest.raises(ValueError, match=next(iter(NUMBERS[name]))):
        shortened(name, "NUMBER_OF_ANOTHER = 3\n")


def test_words(tmp_path: Path) -> None:
    """`tools/words.py` finds the subject that is missing, forbidden words and long sentences."""
    module, page = tmp_path / "module.py", tmp_path / "page.md"
    module.write_text('def sums():\n    """Of rows, anew."""\n\n\nclass A:\n    """The sums."""\n')
    page.write_text(f"A page.\n\n```\nanew\n```\n\nIt goes on with `rows`.\n\n{'word ' * 26}.\n")
    assert [line for line, _ in complaints(module)] == [2, 2]
    assert [line for line, _ in complaints(page)] == [7]
    assert [line for line, _ in complaints(page, long=True)] == [7, 9]
