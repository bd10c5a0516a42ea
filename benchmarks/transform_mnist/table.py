"""The tables of `transform_mnist`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._lib.looks import at_step, at_time, common_steps, seconds_per_step
from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown

COMPONENTS = {"flip": 4, "translate": 16}
MODELS = {
    "flip": ("svgp_m", "svgp_Tm", "matching", "negations"),
    "translate": ("svgp_m", "svgp_Tm", "matching", "matching_shared", "negations"),
}
STEPS_LOOKED_AT = (100, 200, 300, 400, 600, 800, 1_200, 1_600, 2_400, 3_200)
"""Of trainings by seconds."""


def tables_of(records: Sequence[Record]) -> str:
    """The table of trainings by steps, those of trainings by seconds, and that of the optimal q."""
    timed = [one for one in records if "seconds" in one["configuration"]]
    collapsed = [one for one in records if one["configuration"].get("collapsed")]
    by_steps = [one for one in records if one not in timed and one not in collapsed]
    parts = [table_of(by_steps)] if by_steps else []
    parts += [table_of_times(timed)] if timed else []
    parts += [table_of_collapsed(collapsed)] if collapsed else []
    return "\n\n".join(parts)


def table_of(records: Sequence[Record]) -> str:
    """One row per task, size and model; then whether matching transforms beat negations."""
    groups: dict[tuple[Any, ...], dict[str, Record]] = {}
    untrained: dict[str, dict[str, float]] = {}
    for record in records:
        run = record["configuration"]
        if run["steps"] == 0:
            errors = untrained.setdefault(f"{run['task']}, m = {run['num_inducing']}", {})
            errors[run["model"]] = record["result"]["trace_error"]
            continue
        group = tuple(
            run[key]
            for key in ("task", "pixels", "num_inducing", "images", "steps", "learning_rate")
        )
        group += (run["batch_size"], run["seed"], run["source"], run.get("one_hot", False))
        groups.setdefault(group, {})[run["model"]] = record
    rows, lines = [], []
    for group in sorted(groups):
        task, pixels, m, images, steps, _, _, seed, _, regression = group
        results = {model: record["result"] for model, record in groups[group].items()}
        for model in (name for name in MODELS[task] if name in results):
            result = results[model]
            rows.append(
                (
                    task,
                    model,
                    size_of(model, task, m),
                    pixels,
                    f"{images:,}",
                    f"{steps:,}",
                    "one-hot" if regression else "classes",
                    seed,
                    f"{result['accuracy']:.4f}",
                    _number(result["nll"]),
                    _number(result["curve"][-1]["loss"]),
                    f"{result['seconds_per_step']:.3f}",
                    f"{result['train_seconds']:.0f}",
                )
            )
        if "matching" in results and "negations" in results:
            labels = "one-hot labels" if regression else "classes"
            lines.append(f"{task}, {labels}, {steps:,} steps, seed {seed}: {_claim(results)}")
    for title, errors in untrained.items():
        values = ", ".join(f"{model} {error:.4f}" for model, error in errors.items())
        lines.append(f"Nystrom error per image before training, {title}: {values}")
    headers = (
        *("task", "model", "size", "pixels", "images", "steps", "labels", "seed"),
        *("accuracy", "NLL", "train loss", "s per step", "training s"),
    )
    return (
        "MNIST, transformed: test accuracy and NLL; train loss is minus the ELBO per image. The "
        "paper's Figures 2 and 4 give no numbers: matching transforms far above negations, and no "
        "worse than SVGP with T*m.\n\n"
        + markdown(headers, rows)
        + "".join(f"\n\n{line}" for line in lines)
    )


def timed_groups(records: Sequence[Record]) -> dict[tuple[Any, ...], dict[str, Record]]:
    """The records that were trained for seconds, by task and size, and by model."""
    groups: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in records:
        run = record["configuration"]
        if "seconds" in run:
            keys = ("task", "num_inducing", "pixels", "images", "learning_rate", "seed")
            others = (run.get("one_hot", False), run.get("softmax", False))
            group = (*(run[key] for key in keys), *others, run.get("natural_gradient") or 0.0)
            groups.setdefault(group, {})[run["model"]] = record
    order = {task: MODELS[task] for task in MODELS}
    return {
        group: {name: found[name] for name in order[group[0]] if name in found}
        for group, found in sorted(groups.items())
    }


def table_of_times(records: Sequence[Record]) -> str:
    """A table for each task and size: what was found after equal steps, and by seconds."""
    parts = []
    for group, found in timed_groups(records).items():
        task, m, pixels, images, *_ = group
        traces = {model: record["result"]["trace"] for model, record in found.items()}
        seconds = next(iter(found.values()))["configuration"]["seconds"]
        step = common_steps(traces.values(), STEPS_LOOKED_AT)
        rows = []
        for model, trace in traces.items():
            looks = [at_time(trace, one) for one in seconds]
            rows.append(
                (
                    model,
                    size_of(model, task, m),
                    f"{seconds_per_step(trace):.3f}",
                    *_of_look(None if step is None else at_step(trace, step)),
                    " / ".join("-" if one is None else f"{one['accuracy']:.4f}" for one in looks),
                    *_of_look(looks[-1]),
                    "" if looks[-1] is None else f"{looks[-1]['steps']:.0f}",
                )
            )
        after = " / ".join(f"{one:g}" for one in seconds)
        headers = (
            *("model", "size", "CPU s per step", f"accuracy after {step} steps", "NLL"),
            *("train loss", f"accuracy after {after} s", "in the end", "NLL", "train loss"),
            "steps",
        )
        one_hot, softmax, natural = group[-3:]
        labels = "one-hot labels" if one_hot else "softmax" if softmax else "robust maximum"
        title = f"{task}, {pixels} x {pixels}, {images:,} images, {labels}"
        title += f", natural gradients {natural:g}, by seconds" if natural else ", by seconds"
        parts.append(f"{title}\n\n{markdown(headers, rows)}")
    return "\n\n".join(parts)


def table_of_collapsed(records: Sequence[Record]) -> str:
    """A row for each model with the optimal q on one-hot labels."""
    rows = []
    for record in sorted(records, key=lambda one: _place(one["configuration"])):
        run, result = record["configuration"], record["result"]
        rows.append(
            (
                run["task"],
                run["model"],
                size_of(run["model"], run["task"], run["num_inducing"]),
                run["pixels"],
                f"{run['images']:,}",
                f"{result['iterations']:.0f}",
                f"{result['loss_before']:.3f}",
                f"{result['loss']:.3f}",
                f"{100 * result['unexplained']:.2f}",
                f"{result['accuracy']:.4f}",
                f"{result['nll']:.3f}",
                f"{result['train_seconds']:.0f}",
            )
        )
    headers = (
        *("task", "model", "size", "pixels", "images", "iterations", "loss before", "loss"),
        *("unexplained %", "accuracy", "NLL", "CPU s"),
    )
    return f"One-hot labels, the optimal q all along\n\n{markdown(headers, rows)}"


def _place(run: Mapping[str, Any]) -> tuple[Any, ...]:
    names = MODELS[run["task"]]
    return run["task"], run["pixels"], run["images"], run["steps"], names.index(run["model"])


def _of_look(look: Mapping[str, float] | None) -> tuple[str, str, str]:
    if look is None:
        return "", "", ""
    return f"{look['accuracy']:.4f}", f"{look['nll']:.3f}", f"{look['loss']:.3f}"


def size_of(model: str, task: str, num_inducing: int) -> str:
    """The number of inducing points as the paper writes it."""
    T = COMPONENTS[task]
    sizes = {"svgp_m": f"{num_inducing}", "svgp_Tm": f"{T * num_inducing}"}
    return sizes.get(model, f"{T}x{num_inducing}")


def _claim(results: dict[str, Any]) -> str:
    matching, negations = results["matching"], results["negations"]
    more = matching["accuracy"] - negations["accuracy"]
    text = f"matching transforms beat negations by {more:.4f} in accuracy: {_met(more > 0)}"
    if matching["nll"] is not None and negations["nll"] is not None:
        less = negations["nll"] - matching["nll"]
        text += f"; by {less:.3f} in NLL: {_met(less > 0)}"
    return text


def _met(condition: bool) -> str:
    return "met" if condition else "NOT met"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
