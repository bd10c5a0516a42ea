"""The tables of `airline_scale`, the verdicts, and the picture of how the seconds grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._lib.flight_table import TRAIN_ROWS as FLIGHT_ROWS
from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown, megabytes, spread

TARGET_FLOOR = 1.5  # the products of a pass / bare ones
TARGET_SECONDS = {210: 25.0, 660: 75.0}  # of the fit of the whole flight table
TARGET_ADDITIVE_SECONDS = 40.0  # of the additive fit of the whole flight table
TARGET_BYTES = 2 * 2**30  # resident while fitting
TARGET_RATIO = 100.0  # svgp's seconds / vish's, to the same log density
TARGET_DIFFERENCE = 1e-12  # of the sums of several workers and of one process
_PASS = ("read_seconds", "features_seconds", "products_seconds", "pass_seconds")
_FLOORS = ("floor_seconds", "full_product_seconds")


def table_of(records: Sequence[Record]) -> str:
    """Fits and their parts, sums of effects, growth, the race with svgp, and workers."""
    kinds: dict[str, list[Record]] = {}
    for record in sorted(records, key=_position):
        kinds.setdefault(record["configuration"]["kind"], []).append(record)
    parts = [
        part(kinds[kind])
        for kind, part in (
            ("vish", _fits),
            ("additive", lambda found: _additive(found, records)),
            ("growth", _growth),
            ("svgp", _races),
            ("workers", _shared),
        )
        if kind in kinds
    ]
    return "\n\n".join(parts)


def _position(record: Record) -> tuple[Any, ...]:
    run, result = record["configuration"], record["result"]
    size = (result["num_rows"], result["num_inducing"])
    return (run["data"] == "beijing", run["data"], *size, str(record.get("finished_at", "")))


def _data(run: dict[str, Any]) -> str:
    return str(run["data"]) if run.get("truncated", True) else f"{run['data']}, full kernel"


def _fits(records: Sequence[Record]) -> str:
    rows, errors, lines = [], [], []
    for record in records:
        run, result = record["configuration"], record["result"]
        size = (_data(run), f"{result['num_rows']:,}", f"{result['num_inducing']:,}")
        rows.append(
            (
                *size,
                *_seconds(result, "build_seconds", "subset_seconds", *_PASS),
                *_seconds(result, "optimisation_seconds", "fit_seconds", "predict_seconds"),
                _memory(result, "peak_bytes_of_fit"),
            )
        )
        errors.append(
            (
                *size,
                f"{result['test_rows']:,}",
                *(f"{result[name]:.4f}" for name in ("mse", "nlpd", "sample_nlpd")),
                f"{result['bound']:.1f}",
                *_iterations(result, run),
                *_seconds(result, *_FLOORS),
                f"{result['products_over_floor']:.2f}",
            )
        )
        met = _met(result["products_over_floor"] <= TARGET_FLOOR)
        lines.append(
            f"{_data(run)}, M = {size[2]}: products of the pass / bare ones "
            f"{result['products_over_floor']:.2f} (<= {TARGET_FLOOR:g}: {met}); peak "
            f"{result['peak_bytes_of_fit'] / 2**30:.2f} GiB "
            f"(<= 2: {_met(result['peak_bytes_of_fit'] <= TARGET_BYTES)})"
        )
        target = TARGET_SECONDS.get(result["num_inducing"])
        if target is not None and result["num_rows"] == FLIGHT_ROWS:
            lines[-1] += (
                f"; fit {result['fit_seconds']:.1f} s "
                f"(<= {target:g}: {_met(result['fit_seconds'] <= target)})"
            )
    headers = (
        *("data", "rows", "M", "build s", "subset s", "read s", "features s", "products s"),
        *("pass s", "L-BFGS s", "fit s", "predict s", "peak MB"),
    )
    others = (
        *("data", "rows", "M", "test rows", "MSE", "NLPD", "NLPD of sample", "bound"),
        *("subset steps", "steps", "floor s", "full products s", "products / floor"),
    )
    return (
        "Fits of vish. The pass is reading, features and products; fit is all but the "
        "predictions. The peak is the most memory that was resident in the process until then, "
        "pages of the files included; in parentheses what it was before the model was built.\n\n"
        + markdown(headers, rows)
        + "\n\n"
        + markdown(others, errors)
        + "".join(f"\n\n{line}" for line in lines)
    )


def _additive(records: Sequence[Record], others: Sequence[Record]) -> str:
    """Fits of sums of effects, and the errors of other models of the same rows."""
    rows, lines = [], []
    for record in records:
        run, result = record["configuration"], record["result"]
        size = (_data(run), f"{result['num_rows']:,}", f"{result['num_inducing']:,}")
        rows.append(
            (
                *(*size, len(result["pairs"])),
                *_seconds(result, "subset_seconds", *_PASS, "optimisation_seconds", "fit_seconds"),
                _memory(result, "peak_bytes_of_fit"),
                *(f"{result[name]:.4f}" for name in ("mse", "nlpd", "sample_nlpd")),
            )
        )
        beside = "; ".join(
            f"{other['configuration']['kind']} of {other['result']['num_inducing']} "
            f"{other['result']['nlpd']:.4f}"
            for other in others
            if other["configuration"]["kind"] in ("vish", "svgp")
            and other["configuration"]["data"] == run["data"]
            and other["configuration"]["train_rows"] == run["train_rows"]
        )
        pairs = ", ".join(name for name, _ in result["pairs"]) or "none"
        lines.append(f"{size[0]}, NLPD {result['nlpd']:.4f}; {beside}. Pairs: {pairs}")
        if result["num_rows"] == FLIGHT_ROWS:
            met = _met(result["fit_seconds"] <= TARGET_ADDITIVE_SECONDS)
            lines[-1] += (
                f"; fit {result['fit_seconds']:.1f} s (<= {TARGET_ADDITIVE_SECONDS:g}: {met})"
            )
    headers = (
        *("data", "rows", "M", "pairs", "subset s", "read s", "features s", "products s"),
        *("pass s", "L-BFGS s", "fit s", "peak MB", "MSE", "NLPD", "NLPD of sample"),
    )
    return (
        "Sums of effects, by one call.\n\n"
        + markdown(headers, rows)
        + "".join(f"\n\n{line}" for line in lines)
    )


def _growth(records: Sequence[Record]) -> str:
    rows = []
    for record in records:
        result = record["result"]
        rows.append(
            (
                f"{result['num_rows']:,}",
                f"{result['num_inducing']:,}",
                *_seconds(result, *_PASS, *_FLOORS),
                f"{result['products_over_floor']:.2f}",
                spread(result["step_seconds"]),
                _memory(result, "peak_bytes"),
            )
        )
    headers = (
        *("rows", "M", "read s", "features s", "products s", "pass s", "floor s"),
        *("full products s", "products / floor", "step s", "peak MB"),
    )
    return "Growth (flights); a step is bound and gradient.\n\n" + markdown(headers, rows)


def _races(records: Sequence[Record]) -> str:
    rows, lines = [], []
    for record in records:
        run, result = record["configuration"], record["result"]
        reached, ratio = result["reached"], result["ratio"]
        shown = f"{ratio:.1f}" if reached else f">= {ratio:.1f}"
        rows.append(
            (
                *(_data(run), f"{result['num_rows']:,}", result["num_inducing"], _optimiser(run)),
                *(f"{result[name]:.4f}" for name in ("target_nlpd", "sample_nlpd")),
                "yes" if reached else "no",
                *_seconds(result, "seconds", "budget_seconds", "vish_seconds"),
                *(shown, f"{result['steps']:,.0f}"),
                *(f"{result[name]:.4f}" for name in ("mse", "nlpd")),
                _memory(result, "peak_bytes"),
            )
        )
        if ratio >= TARGET_RATIO:
            met = "met"
        else:
            met = "NOT met" if reached else "undecided, the budget ended first"
        lines.append(
            f"{_data(run)}, {_optimiser(run)}: svgp's seconds to vish's log density / vish's "
            f"seconds {shown} (>= {TARGET_RATIO:g}: {met})"
        )
    headers = (
        *(
            "data",
            "rows",
            "M",
            "q by",
            "target NLPD of sample",
            "NLPD of sample",
            "reached",
            "seconds",
        ),
        *("budget s", "vish s", "svgp / vish", "steps", "MSE", "NLPD", "peak MB"),
    )
    return (
        "svgp, until its log density is that of vish with degree 3.\n\n"
        + markdown(headers, rows)
        + "".join(f"\n\n{line}" for line in lines)
    )


def _shared(records: Sequence[Record]) -> str:
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        seconds, difference = result["seconds"], result["difference"]
        rows.append(
            (
                f"{result['num_rows']:,}",
                f"{result['num_inducing']:,}",
                str(run["workers"]),
                spread(seconds["one"]),
                spread(seconds["shared"]),
                spread(result["ratio"]),
                f"{difference:.1e} ({_met(difference <= TARGET_DIFFERENCE)})",
                "yes" if result["same_bits_on_all_workers"] else "NO",
                megabytes(result["bytes_shared"]),
            )
        )
    headers = (
        *("rows", "M", "workers", "one process, one core s", "workers, a core each s", "ratio"),
        *("difference of the sums", "same bits on all workers", "MB that travel"),
    )
    return (
        "The pass by one process, and shared by workers (medians of rounds). The difference is "
        f"relative, target {TARGET_DIFFERENCE:g}.\n\n" + markdown(headers, rows)
    )


def _optimiser(run: dict[str, Any]) -> str:
    return "Adam" if run["natural_gradient"] is None else "natural gradients"


def _memory(result: dict[str, Any], name: str) -> str:
    return f"{megabytes(result[name])} ({megabytes(result['peak_bytes_before'])})"


def _seconds(result: dict[str, Any], *names: str) -> tuple[str, ...]:
    return tuple(f"{result[name]:.3g}" for name in names)


def _iterations(result: dict[str, Any], run: dict[str, Any]) -> tuple[str, str]:
    def text(done: int, converged: bool) -> str:
        return f"{done}" if converged else f"{done}, not converged"

    first = text(result["subset_steps"], result["subset_converged"])
    return f"{first} ({run['subset_size']:,} rows)", text(result["steps"], result["converged"])


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"


def draw(folder: Path, records: Sequence[Record]) -> None:
    """The pass and a step against the rows for each M, and against M for all rows."""
    from matplotlib.figure import Figure

    newest = {  # of runs with several settings, one point each
        (record["result"]["num_rows"], record["result"]["num_inducing"]): record["result"]
        for record in sorted(records, key=_position)
        if record["configuration"]["kind"] == "growth"
    }
    results = list(newest.values())
    if not results:
        return
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    passes, steps, sizes = figure.subplots(1, 3)
    for i, num_inducing in enumerate(sorted({result["num_inducing"] for result in results})):
        found = [result for result in results if result["num_inducing"] == num_inducing]
        style = {"color": f"C{i}", "label": f"M = {num_inducing:,}"}
        rows = [result["num_rows"] for result in found]
        passes.plot(rows, [result["pass_seconds"] for result in found], "o-", **style)
        floors = [result["floor_seconds"] for result in found]
        passes.plot(rows, floors, "--", color=f"C{i}", lw=1)
        steps.plot(rows, [result["step_seconds"]["median"] for result in found], "o-", **style)
    largest = max(result["num_rows"] for result in results)
    most = [result for result in results if result["num_rows"] == largest]
    most.sort(key=lambda result: int(result["num_inducing"]))
    inducing = [result["num_inducing"] for result in most]
    for name in ("pass_seconds", "features_seconds", "products_seconds"):
        label = name.replace("_seconds", "")
        sizes.plot(inducing, [result[name] for result in most], "o-", label=label)
    sizes.plot(inducing, [result["floor_seconds"] for result in most], "k--", lw=1, label="floor")
    step = [result["step_seconds"]["median"] for result in most]
    sizes.plot(inducing, step, "s-", color="0.5", label="one step")
    passes.set_title("the pass (dashed: bare products)", fontsize=9)
    steps.set_title("one step: bound and gradient", fontsize=9)
    sizes.set_title(f"{largest:,} rows", fontsize=9)
    for axis, label in ((passes, "rows"), (steps, "rows"), (sizes, "M")):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(label)
        axis.legend(fontsize=7)
    passes.set_ylabel("seconds")
    figure.savefig(folder / "airline_scale.png", dpi=80)
