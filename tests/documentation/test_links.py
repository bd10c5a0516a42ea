"""Links in the pages that GitHub shows lead to files of the repository, and to headings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.pages import ROOT

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links(name: str) -> None:
    page = ROOT / name
    for target, anchor in LINK.findall(page.read_text()):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{name} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(path), f"{name} links to {target}#{anchor}"
