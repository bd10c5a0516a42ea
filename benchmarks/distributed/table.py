"""The tables of `distributed`: the measurements, and the predictions of the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown, spread
from benchmarks.distributed.cost import (
    PREDICTED_WORKERS,
    Network,
    StepCost,
    reduced_bytes,
    ring_bytes,
    strong_scaling,
    weak_scaling,
)

TARGET = 1.7  # times as quick on two
NO_STRATEGY = "no strategy"
HALVES = "2 halves"
SIDES = (NO_STRATEGY, "1 device", "2 devices", "1 worker", "2 workers", HALVES)
RIVALS = {"2 devices": "1 device", "2 workers": "1 worker"}
# How a fit is run, and not what is fitted.
_RUN = ("batch_sizes", "device_threads", "warm_up", "steps", "rounds", "seed")


@dataclass(frozen=True)
class Batch:
    """The newest result of one model and batch size.

    :param model: its name and sizes.
    :param numbers: the number of trained numbers.
    :param result: the figures of one batch size, as `distributed.summary_of` has it.
    """

    model: str
    numbers: int
    rows: int
    result: dict[str, Any]

    def median(self, side: str) -> float:
        return float(self.result["seconds"][side]["median"])


def table_of(records: Sequence[Record], network: Network) -> str:
    """Throughput, bytes, the check of the cost model, and its predictions."""
    batches = _batches(records)
    models: dict[str, list[Batch]] = {}
    for batch in batches:
        models.setdefault(batch.model, []).append(batch)
    costs = {
        name: StepCost.fit(
            [batch.rows for batch in found], [batch.median("1 worker") for batch in found]
        )
        for name, found in models.items()
        if len(found) > 1
    }
    parts = [_throughput(batches), _bytes(batches)]
    if costs:
        fitted = [batch for batch in batches if batch.model in costs]
        parts += [_check(fitted, costs), _predictions(fitted, costs, network)]
    else:
        parts.append("The cost model needs one worker's steps with two batch sizes of a model.")
    return "\n\n".join(parts)


def _batches(records: Sequence[Record]) -> list[Batch]:
    """The newest result of each model and batch size."""
    found: dict[tuple[str, int], Batch] = {}
    for record in sorted(records, key=lambda record: str(record.get("finished_at", ""))):
        run, result = record["configuration"], record["result"]
        sizes = {name: value for name, value in run.items() if name not in ("model", *_RUN)}
        model = run["model"] + "".join(f", {name} {value:,}" for name, value in sizes.items())
        for batch in result["batches"]:
            key = (model, batch["batch_size"])
            found[key] = Batch(model, result["numbers"], batch["batch_size"], batch)
    return [found[key] for key in sorted(found)]


def _throughput(batches: Sequence[Batch]) -> str:
    rows = []
    for batch in batches:
        for side in SIDES:
            if side not in batch.result["seconds"]:  # results that are older than this side
                continue
            seconds = batch.result["seconds"][side]
            rivals = [RIVALS[side], NO_STRATEGY] if side in RIVALS else []
            ratios = [batch.result["ratios"][f"{rival} / {side}"] for rival in rivals]
            verdicts = ["met" if gain["median"] >= TARGET else "NOT met" for gain in ratios]
            gains = [spread(gain) for gain in ratios] or ["", ""]
            if side == HALVES:
                gains = ["", spread(batch.result["ratios"][f"{NO_STRATEGY} / {HALVES}"])]
            rows.append(
                (
                    *(batch.model, f"{batch.rows:,}", side, spread(seconds)),
                    f"{batch.rows / seconds['median']:,.0f}",
                    *gains,
                    "; ".join(verdicts),
                )
            )
    headers = (
        *("model", "rows", "side", "step s", "rows / s", "against one", "against no strategy"),
        f">= {TARGET:g}",
    )
    return (
        "Steps with the same batch: median [quartiles] over rounds. Speedups of two devices or "
        f"workers against one of the same strategy, and against {NO_STRATEGY}; {HALVES}: two "
        "processes with half of the rows each and no strategy, as quick as the machine allows.\n\n"
        + markdown(headers, rows)
    )


def _bytes(batches: Sequence[Batch]) -> str:
    rows = []
    for batch in batches:
        carried = batch.result["loopback_bytes"]
        entering = reduced_bytes(batch.numbers)
        rows.append(
            (
                *(batch.model, f"{batch.rows:,}", f"{batch.numbers:,}", f"{entering:,}"),
                f"{ring_bytes(2, entering):,.0f}",
                "" if carried is None else f"{carried / 2:,.0f}",
            )
        )
    headers = (
        *("model", "rows", "trained numbers", "bytes reduced"),
        *("sent by each of 2 workers", "loopback / 2"),
    )
    return (
        "Bytes of a step: counted (8 for each trained number, the loss and the number of rows; "
        "each worker sends 2 (W - 1) / W of them in a ring), and what loopback carried during the "
        "steps of two workers, others' included.\n\n" + markdown(headers, rows)
    )


def _check(batches: Sequence[Batch], costs: dict[str, StepCost]) -> str:
    rows = []
    for batch in batches:
        cost = costs[batch.model]
        alone, together = batch.median("1 worker"), batch.median("2 workers")
        halved = cost.seconds(batch.rows / 2)
        rows.append(
            (
                *(
                    batch.model,
                    f"{batch.rows:,}",
                    f"{alone:.4g}",
                    f"{cost.seconds(batch.rows):.4g}",
                ),
                *(f"{halved:.4g}", f"{together:.4g}", f"{1e3 * (together - halved):.2f}"),
                f"{together / halved - 1.0:+.0%}",
            )
        )
    headers = (
        *("model", "rows", "1 worker s", "a + b B s", "a + b B/2 s", "2 workers s"),
        *("residual ms", "of a + b B/2"),
    )
    lines = [
        f"{name}: a = {1e3 * cost.fixed:.3g} ms, b = {1e6 * cost.per_row:.3g} microseconds a row"
        for name, cost in costs.items()
    ]
    return (
        "The cost model t(W) = a + b B / W + c(W), a and b fitted to one worker. The residual of "
        "two workers is what their communication costs on loopback, with all that the model leaves "
        "out.\n\n" + markdown(headers, rows) + "".join(f"\n\n{line}" for line in lines)
    )


def _predictions(batches: Sequence[Batch], costs: dict[str, StepCost], network: Network) -> str:
    rows = []
    for batch in batches:
        given = (batch.rows, reduced_bytes(batch.numbers))
        cost = costs[batch.model]
        rows.append(
            (
                *(batch.model, f"{batch.rows:,}"),
                *(str(strong_scaling(cost, network, w, *given)) for w in PREDICTED_WORKERS),
                *(str(weak_scaling(cost, network, w, *given)) for w in PREDICTED_WORKERS),
            )
        )
    headers = (
        *("model", "rows"),
        *(f"{w} share them" for w in PREDICTED_WORKERS),
        *(f"{w}, rows each" for w in PREDICTED_WORKERS),
    )
    waits = ", ".join(
        f"{1e3 * network.seconds(w, reduced_bytes(batches[0].numbers)):.2g} ms at {w}"
        for w in PREDICTED_WORKERS
    )
    return (
        "Predicted, not measured: speedup (efficiency) with the batch shared by all workers, and "
        "with a batch of as many rows for each. Assumed: c(W) = "
        f"{network.all_reduces} x 2 (W - 1) {1e6 * network.latency:g} microseconds + 2 (W - 1) / W "
        f"x bytes / ({network.bandwidth / 1e9:g} Gbit/s), a ring ({batches[0].model}: {waits}); "
        "workers as quick as the core measured, which do not wait for a slowest one, nor compute "
        "while they wait for the network.\n\n" + markdown(headers, rows)
    )
