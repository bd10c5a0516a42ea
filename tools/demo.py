"""Run a notebook as a program, and write the figures that it leaves open.

    python tools/demo.py notebooks/terrain.py [FOLDER]

The pictures go to FOLDER (`notebooks/output` if it is not given), as `<notebook>.png`.
"""

import os
import runpy
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def import_tensorflow() -> None:
    """Import TensorFlow, and hide the standard error unless the import fails. TensorFlow's own
    variable does not silence messages that come before it is read."""
    sys.stderr.flush()
    visible = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            import tensorflow as tf

            tf.constant(0)  # finds devices, with messages
        except BaseException:
            hidden.seek(0)
            os.write(visible, hidden.read())
            raise
        finally:
            os.dup2(visible, 2)
            os.close(visible)


def main(notebook: Path, folder: Path) -> None:
    print("importing TensorFlow ...", flush=True)
    import_tensorflow()
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
