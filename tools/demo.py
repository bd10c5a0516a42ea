"""Run a notebook as a program, and write the figures that it leaves open.

    python tools/demo.py notebooks/terrain.py [FOLDER]

The pictures go to FOLDER (`notebooks/output` if it is not given), as `<notebook>.png`.
"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def main(notebook: Path, folder: Path) -> None:
    pyplot.show = lambda *arguments, **options: None  # figures stay open
    runpy.run_path(str(notebook), run_name="__main__")
    folder.mkdir(parents=True, exist_ok=True)
    for number in pyplot.get_fignums():
        suffix = "" if number == 1 else f"_{number}"
        path = folder / f"{notebook.stem}{suffix}.png"
        pyplot.figure(number).savefig(path, dpi=80)
        print(f"picture: {path}")


if __name__ == "__main__":
    here = Path(sys.argv[1])
    main(here, Path(sys.argv[2]) if len(sys.argv) > 2 else here.parent / "output")
