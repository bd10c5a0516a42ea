"""The programs of README and of the guides run, and print what the pages say."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from check_shapes import disable_check_shapes

from tests.documentation.pages import ROOT, blocks, difference, pages

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}

EXAMPLES = ("covariances", "inducing_variables", "kernels", "plotting", "posteriors", "transforms")
QUICK = {"README.md", *(f"docs/examples/{name}.md" for name in EXAMPLES)}
"""Those that train no model, or a small one."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name)
        for name in PAGES
    ],
)
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one program, block by block; an error names the line of the page."""
    # A function that is pickled or traced is looked up in its module.
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGES[name]):
        printed = io.StringIO()
        # Shapes take a tenth of the time, and are checked in all other tests.
        with contextlib.redirect_stdout(printed), disable_check_shapes():
            exec(compile("\n" * block.line + block.program, str(PAGES[name]), "exec"), names)
        if block.output is not None:
            wrong = difference(block.output, printed.getvalue())
            assert wrong is None, f"{name}, the program of line {block.line}: {wrong}"
        else:
            assert not printed.getvalue().strip(), f"{name}, line {block.line}: prints unpromised"


def test_pages_are_found() -> None:
    assert {"docs/start.md", "docs/guides/serving.md", *QUICK} <= set(PAGES)


def test_outputs_are_compared() -> None:
    for expected, found, same in [
        ("ELBO 351", "ELBO 351", True),
        ("ELBO 351", "ELBO 353", True),
        ("ELBO 351", "ELBO 216", False),
        ("81 harmonics", "80 harmonics", False),
        ("noise 0.100", "noise 0.101", True),
        ("noise 0.100", "noise 0.113", False),
        ("sign -0.5", "sign 0.5", False),
        ("138,632 rows", "138,632 rows", True),
        ("converged", "steps", False),
        ("one\ntwo", "one", False),
    ]:
        assert (difference(expected, found) is None) == same, (expected, found)
