"""Pages of the site, one for each benchmark: its question, its table from the stored results, its
pictures, and its section of benchmarks/README.md.

No number is typed here: `Benchmark.table` makes each table.
"""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS
from benchmarks._lib.results import RESULTS_FOLDER, ResultFile
from benchmarks._lib.runner import Benchmark, command_of

README = RESULTS_FOLDER.parent / "README.md"
QUESTION = re.compile(
    r"^\| `python -m benchmarks\.(?:\w+\.)*(\w+)` \| (.*?) \| .*\|$", re.MULTILINE
)

GROUPS = {
    "Judged by others": "heaton referees calibration",
    "Regression in one pass": "terrain splines neighbours globe fast_sums",
    "Hours and stations, sums and means": "space_time functionals",
    "Tables": "estimators pareto additive",
    "Other likelihoods": "any_likelihood",
    "Many rows": "airline_scale",
    "Deep models": "deep_uci",
    "Costs of single steps": "hvgp_scaling startup",
    "Spherical harmonics (Dutordoir et al. 2020)": "uci_vish vff_additive banana_degree",
    "Harmonic kernels (Sun et al. 2021)": "hvgp_tables elevation nystrom transform_mnist "
    "image_patches deep_conv",
    "Convolutional Gaussian processes (van der Wilk et al. 2017)": "convolutional",
    "Harmonizable mixtures (Shen et al. 2019)": "kernel_recovery banana_hmk solar",
    "Activation features (Tiao et al. 2023)": "uci_orthogonal snelson",
}


def questions() -> dict[str, str]:
    """The question of each benchmark, from the table of benchmarks/README.md."""
    return dict(QUESTION.findall(README.read_text()))


def notes() -> dict[str, str]:
    """The section of benchmarks/README.md for each benchmark; a heading may name several."""
    sections = re.split(r"^## (.+)$", README.read_text(), flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for heading, text in zip(sections[::2], sections[1::2], strict=True):
        for name in re.findall(r"\w+", heading):
            if name in BENCHMARKS:
                found[name] = text.strip()
    return found


def pictures(name: str) -> list[Path]:
    """The pictures that the benchmark has drawn beside its results."""
    others = [other for other in BENCHMARKS if other != name and other.startswith(name)]
    return [
        path
        for path in sorted(RESULTS_FOLDER.glob(f"{name}*.png"))
        if path.stem == name
        or (path.stem.startswith(f"{name}_") and not path.stem.startswith(tuple(others or "\0")))
    ]


def table(benchmark: Benchmark) -> str:
    """The table of the stored results of a benchmark."""
    records = ResultFile(RESULTS_FOLDER / f"{benchmark.name}.jsonl").records()
    return benchmark.table(records) if records else "There are no stored results yet."


def page(kind: type[Benchmark], note: str | None) -> str:
    """The Markdown of one page."""
    name = kind.name
    parts = [
        f"# {name}",
        questions().get(name, ""),
        f"```\npython -m {command_of(kind)}\n```",
        "## Results",
        *(f"![Results of {name}: {path.stem}](images/{path.name})" for path in pictures(name)),
        _in_scrolls(table(kind())),
    ]
    if note:
        parts += ["## Notes", _as_page(note)]
    parts += ["## How it is measured", _paragraphs(inspect.getdoc(kind) or "")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_scrolls(text: str) -> str:
    """The text with the class `scrolls` for each of its tables, whose numbers do not break."""
    text = re.sub(
        r" ± |(?<=\d), (?=-?[\d.]+\])", lambda m: m[0].replace(" ", "\N{NO-BREAK SPACE}"), text
    )
    text = re.sub(r"(?<=\de-)(?=\d)", "\N{WORD JOINER}", text)
    return re.sub(r"(?m)(?<![^\n]\n)^(?=\|)", "```{rst-class} scrolls\n```\n\n", text)


def _as_page(note: str) -> str:
    """A note with its headings one level down, and with links to pages instead of sections."""
    note = re.sub(r"^(#+) ", r"#\1 ", note, flags=re.MULTILINE)
    note = re.sub(r"\]\(#(\w+)\)", r"](\1.md)", note)
    return note.replace("](../docs/", "](../").replace("](results/", "](images/")


def _paragraphs(docstring: str) -> str:
    """A docstring as literal text, since spaces align its lists."""
    return f"```text\n{docstring.strip()}\n```"


def write(folder: Path) -> None:
    """Write all pages, and the page that lists them, into a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "images").mkdir(parents=True)
    for path in RESULTS_FOLDER.glob("*.png"):
        shutil.copy(path, folder / "images")
    asked, noted = questions(), notes()
    grouped = {name for names in GROUPS.values() for name in names.split()}
    groups = {**GROUPS, "Others": " ".join(name for name in BENCHMARKS if name not in grouped)}
    parts = [
        "# Benchmarks",
        "Every table of these pages is made from the stored results when the site is built. The "
        "times are those of one machine with two cores; ratios travel, seconds do not. "
        "[How to run them](running.md) says how things are measured.",
        "```{toctree}\n:hidden:\n\nrunning\n```",
    ]
    for title, listed in groups.items():
        names = [name for name in listed.split() if name in BENCHMARKS]
        if not names:
            continue
        rows = [f"| [{name}]({name}.md) | {asked.get(name, '')} |" for name in names]
        parts += [f"## {title}", "\n".join(["| benchmark | question |", "| --- | --- |", *rows])]
        parts.append("\n".join(["```{toctree}", ":hidden:", "", *names, "```"]))
        for name in names:
            (folder / f"{name}.md").write_text(page(BENCHMARKS[name], noted.get(name)))
    (folder / "index.md").write_text("\n\n".join(parts) + "\n")
    (folder / "running.md").write_text(_running())


def _running() -> str:
    """The part of benchmarks/README.md before the first benchmark's section."""
    text = README.read_text()
    start = text.index("\nEach benchmark")
    headings = list(re.finditer(r"^## (.+)$", text, re.MULTILINE))
    first = next(m for m in headings if set(re.findall(r"\w+", m[1])) & set(BENCHMARKS))
    general = re.sub(r"^\|.*\|\n", "", text[start : first.start()], flags=re.MULTILINE)
    return f"# How to run the benchmarks\n{general.strip()}\n"
