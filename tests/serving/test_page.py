"""The examples of docs/serving.md run, as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.mark.full
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block begins at its line of the page, so that an error names it."""
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 5
    # A function that is pickled or traced is looked up in its module.
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)
