"""The notebooks as pages of the site, and cards with thumbnails that lead to them.

Building the site executes nothing. It shows the stored `.ipynb` beside each `.py`, which `make
notebooks` has executed, or the source if there is none.
"""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"

GROUPS = {
    "Start here": ["quickstart", "terrain"],
    "Places on the earth, and in time": [
        "globe",
        "splines",
        "space_and_time",
        "sums_means_slopes",
        "harmonizable",
    ],
    "Tables": ["additive", "chosen_harmonics", "large_data"],
    "Images": ["convolutional"],
    "Sums of kernels, and deep models": [
        "harmonic",
        "transformations",
        "activation_orthogonal",
        "deep",
    ],
    "Functions": ["function_samples"],
}


def sources() -> list[Path]:
    """The notebooks; files that begin with an underscore are helpers."""
    return sorted(FOLDER.glob("[!_]*.py"))


def notebook(source: Path) -> nbformat.NotebookNode:
    """The executed notebook; if there is none, its source with a note."""
    executed = source.with_suffix(".ipynb")
    if executed.exists():
        return nbformat.read(executed, as_version=4)
    pages = jupytext.read(source)
    note = (
        "The outputs of this notebook are not stored: "
        f"`make notebooks NOTEBOOKS=notebooks/{source.name}` executes it."
    )
    pages.cells.insert(1, nbformat.v4.new_markdown_cell(note))
    return pages


def title_and_summary(pages: nbformat.NotebookNode) -> tuple[str, str]:
    """The heading of the first cell, and the first paragraph that follows."""
    first = next(cell.source for cell in pages.cells if cell.cell_type == "markdown")
    heading, _, rest = first.partition("\n")
    paragraph = rest.strip().split("\n\n")[0]
    return heading.lstrip("# ").strip(), " ".join(paragraph.split())


def thumbnail(pages: nbformat.NotebookNode) -> bytes | None:
    """The picture of the cell with the tag `thumbnail`; otherwise the last picture."""
    found = None
    for cell in pages.cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                found = base64.b64decode(picture)
                if "thumbnail" in cell.metadata.get("tags", []):
                    return found
    return found


def write(folder: Path) -> None:
    """Write all pages, their thumbnails, and the page of cards."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "thumbnails").mkdir(parents=True)
    cards = {}
    for source in sources():
        pages = notebook(source)
        nbformat.write(pages, folder / f"{source.stem}.ipynb")
        picture = thumbnail(pages)
        if picture:
            (folder / "thumbnails" / f"{source.stem}.png").write_bytes(picture)
        title, summary = title_and_summary(pages)
        cards[source.stem] = _card(source.stem, title, summary, picture is not None)
    grouped = [name for names in GROUPS.values() for name in names]
    groups = {**GROUPS, "Others": [name for name in cards if name not in grouped]}
    parts = [
        "# Gallery",
        "Each notebook answers one question with data that need no download. Those with a picture "
        "were executed before, and are shown with what they printed and drew.",
    ]
    for heading, names in groups.items():
        there = [cards[name] for name in names if name in cards]
        if there:
            parts += [
                f"## {heading}",
                "\n".join(["::::{grid} 1 2 2 2", ":gutter: 3", "", *there, "::::"]),
            ]
    listed = [name for names in groups.values() for name in names if name in cards]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *listed, "```"]))
    (folder / "index.md").write_text("\n\n".join(parts) + "\n")


def _card(name: str, title: str, summary: str, has_picture: bool) -> str:
    first_sentence = re.split(r"(?<=[.?!]) (?=[A-Z`])", summary)[0]
    lines = [":::{grid-item-card} " + title, f":link: {name}", ":link-type: doc"]
    if has_picture:
        lines.append(f":img-bottom: thumbnails/{name}.png")
        lines.append(f":img-alt: What the notebook {name} draws")
    return "\n".join([*lines, "", first_sentence, ":::"])
