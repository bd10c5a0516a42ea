"""Execute percent-format notebooks as notebooks, one kernel each.

    python tools/run_notebooks.py [--jobs 2] [notebooks/one.py ...]

Without arguments, all `notebooks/*.py` are executed, except names that begin with an underscore.
The executed notebook is written as `notebooks/<name>.ipynb`, which is committed and which GitHub
and the site show. With INTERDOMAIN_SMOKE=1 it is a short run (`tools/short_runs.py`). Short runs
and notebooks with a failed cell go to `notebooks/output/`. As in Jupyter, the working directory is
the notebook's own folder. The exit status is 1 if a notebook fails, or if there is none.
"""

import argparse
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from short_runs import shortened

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"

# Messages that TensorFlow writes to the standard error of any process that imports it.
CHATTER = re.compile(r"^(WARNING: All log messages before|[IWE]\d{4} |\d{4}-\d\d-\d\d |To enable )")


class ThisInterpreter(KernelSpecManager):
    """A kernel manager that starts this Python, whatever kernels the user has registered."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        # The kernel listens on the loopback interface only, so its warning that TCP is not
        # encrypted is hidden.
        launch = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR"]
        return KernelSpec(
            argv=[*launch, "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
        )


def execute(path: Path, timeout: float) -> str | None:
    """Execute one notebook, and return the error, or None."""
    source = path.read_text()
    notebook = jupytext.reads(shortened(path.stem, source) if SMOKE else source, fmt="py:percent")
    client = NotebookClient(
        notebook,
        timeout=timeout,
        km=AsyncKernelManager(kernel_spec_manager=ThisInterpreter()),
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
    )
    folder, failure = path.parent, None
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:
        failure = str(error)
    if failure or SMOKE:
        folder = folder / "output"
        folder.mkdir(exist_ok=True)
    nbformat.write(tidied(notebook), folder / f"{path.stem}.ipynb")
    return failure


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without ids and outputs that differ from run to run."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        kept = []
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                lines = output.text.splitlines(keepends=True)
                output.text = "".join(line for line in lines if not CHATTER.match(line))
            if output.get("text") != "":
                kept.append(output)
        if cell.cell_type == "code":
            cell.outputs = kept
    notebook.metadata = {
        "jupytext": {"formats": "ipynb,py:percent"},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one cell")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks at a time")
    arguments = parser.parse_args()

    paths = [path.resolve() for path in arguments.notebooks] or sorted(FOLDER.glob("[!_]*.py"))
    if not paths:
        print(f"There is no notebook in {FOLDER}.", file=sys.stderr)
        return 1

    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # pictures in the cells
    smoke = " (smoke run)" if SMOKE else ""

    def timed(path: Path) -> tuple[str | None, float]:
        start = time.perf_counter()
        return execute(path, arguments.timeout), time.perf_counter() - start

    failed = []
    with ThreadPoolExecutor(max(1, arguments.jobs)) as executor:
        running = {executor.submit(timed, path): path for path in paths}
        for future in as_completed(running):
            name = running[future].name
            error, seconds = future.result()
            print(f"{name}{smoke} ... {'FAILED' if error else 'ok'} in {seconds:.1f} s", flush=True)
            if error:
                failed.append(name)
                print(error, file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(paths)} notebooks failed: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
