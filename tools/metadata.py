"""A metadata hook of Hatchling: the project's URLs, and the description made from README.md.

The repository's URL is set once, in pyproject.toml under `[tool.hatch.metadata.hooks.custom]`. An
index of packages shows README.md outside of the repository, where relative links lead nowhere. With
a URL, the hook makes these links absolute and adds `[project.urls]`. Without one it adds nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute_links(text: str, repository: str) -> str:
    """A Markdown text whose relative links and pictures lead into the repository at a URL."""
    text = re.sub(r"(!\[[^\]]*\])\((?!https?:|#)([^)]+)\)", rf"\1({repository}/raw/main/\2)", text)
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({repository}/blob/main/\1)", text)


class Metadata(MetadataHookInterface):
    """The dynamic fields `readme` and `urls` of pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields."""
        text = (Path(self.root) / "README.md").read_text()
        repository = self.config["repository"].rstrip("/")
        if repository:
            text = absolute_links(text, repository)
            metadata["urls"] = {
                "Repository": repository,
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
