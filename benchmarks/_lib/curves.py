"""Pictures of trainings: what was found against seconds and against steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks._lib.looks import Trace

SHOWN = 0.8
"""The share of the looks, the better ones, that set the height of a panel."""


def draw_traces(
    path: Path,
    traces: Mapping[str, Mapping[str, Trace]],
    measures: Mapping[str, str],
    *,
    abscissae: Sequence[str] = ("seconds", "steps"),
) -> None:
    """A row of panels for each data set, a panel for each measure and abscissa.

    :param traces: By data set and model.
    :param measures: Key in the looks: label. Of those whose label says "bound" more is better.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import ScalarFormatter

    kinds = [(measure, abscissa) for measure in measures for abscissa in abscissae]
    figure, axes = plt.subplots(
        len(traces),
        len(kinds),
        figsize=(3.2 * len(kinds), 2.8 * len(traces)),
        layout="constrained",
        squeeze=False,
    )
    for row, (data, models) in zip(axes, traces.items(), strict=True):
        for ax, (measure, abscissa) in zip(row, kinds, strict=True):
            shown = [one[measure] for trace in models.values() for one in trace]
            for name, trace in models.items():
                ax.plot(
                    [one[abscissa] for one in trace],
                    [one[measure] for one in trace],
                    "o-",
                    ms=2.5,
                    lw=1.1,
                    label=name,
                )
            more = "bound" in measures[measure]
            worst = float(np.quantile(shown, 1 - SHOWN if more else SHOWN))
            best = max(shown) if more else min(shown)
            margin = 0.08 * abs(best - worst) + 1e-9
            ax.set_ylim(min(best, worst) - margin, max(best, worst) + margin)
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.set_xlabel("seconds of a processor" if abscissa == "seconds" else abscissa)
            ax.set_ylabel(measures[measure])
            ax.set_title(data, fontsize="small")
    axes[0][0].legend(fontsize="x-small")
    figure.savefig(path, dpi=70)
    plt.close(figure)
