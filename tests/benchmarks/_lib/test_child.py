"""Functions in processes of their own, and the clusters that such processes are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks._lib.child import Call, from_child, from_children


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "children.py").write_text(
        "import os, pathlib, sys, time\n\n\n"
        "def meet(index, folder):\n"
        "    here = pathlib.Path(folder)\n"
        "    (here / f'{index}').write_text(str(os.getpid()))\n"
        "    while len(list(here.iterdir())) < 2:\n"
        "        time.sleep(0.01)\n"
        "    return [index, os.environ['NAME']]\n\n\n"
        "def fail_or_wait(index, folder):\n"
        "    meet(index, folder)\n"
        "    if index == 1:\n"
        "        sys.exit('out of luck')\n"
        "    time.sleep(600)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import children  # type: ignore[import-not-found]

    return children


def calls(folder: Path, count: int = 2) -> list[Call]:
    folder.mkdir()
    return [Call({"index": i, "folder": str(folder)}, {"NAME": f"n{i}"}) for i in range(count)]


@pytest.mark.slow
def test_children(scripts: Any, tmp_path: Path) -> None:
    """They run at the same time, and none is left where one fails or time is over."""
    met = from_children(scripts.meet, calls(tmp_path / "met"), timeout=60.0)
    assert met == [[0, "n0"], [1, "n1"]]
    with pytest.raises(RuntimeError, match=r"exit status \[None, 1\](.|\n)*out of luck"):
        from_children(scripts.fail_or_wait, calls(tmp_path / "failing"), timeout=60.0)
    with pytest.raises(RuntimeError, match=r"within 1 s, exit status \[None\]"):
        from_children(scripts.meet, calls(tmp_path / "late", count=1), timeout=1.0)
    for file in [*(tmp_path / "failing").iterdir(), *(tmp_path / "late").iterdir()]:
        assert not Path("/proc", file.read_text()).exists()
    alone = {"index": 1, "folder": str(tmp_path / "failing")}
    with pytest.raises(RuntimeError, match=r"exit status 1:\n(.|\n)*out of luck"):
        from_child(scripts.fail_or_wait, environment={"NAME": "n"}, **alone)
