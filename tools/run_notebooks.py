"""Execute percent-format notebooks as notebooks, one kernel each.

    python tools/run_notebooks.py [--jobs 2] [notebooks/one.py ...]

Without arguments: every `notebooks/*.py`. The executed notebooks, outputs included, are written
to `notebooks/output/` even when a cell fails. As in Jupyter, the working directory is the
notebook's own folder. Notebooks that find INTERDOMAIN_SMOKE=1 in their environment make a short
run. The exit status is 1 if a notebook fails, or if there is none.
"""

import argparse
import os
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

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


class ThisInterpreter(KernelSpecManager):
    """Starts this very Python, whatever kernels the user has registered under its name."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        # The kernel listens on the loopback interface only; its warning that TCP is not
        # encrypted would stand between the lines of every run.
        launch = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR"]
        return KernelSpec(
            argv=[*launch, "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
        )


def execute(path: Path, timeout: float) -> str | None:
    """Execute one notebook; return what went wrong, or None."""
    notebook = jupytext.read(path)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        km=AsyncKernelManager(kernel_spec_manager=ThisInterpreter()),
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:
        return str(error)
    finally:
        output = path.parent / "output"
        output.mkdir(exist_ok=True)
        nbformat.write(notebook, output / f"{path.stem}.ipynb")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one cell")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks at a time")
    arguments = parser.parse_args()

    paths = [path.resolve() for path in arguments.notebooks] or sorted(FOLDER.glob("*.py"))
    if not paths:
        print(f"There is no notebook in {FOLDER}.", file=sys.stderr)
        return 1

    smoke = " (smoke run)" if os.environ.get("INTERDOMAIN_SMOKE") == "1" else ""

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
