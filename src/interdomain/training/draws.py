"""Models whose loss draws random numbers, such as :class:`interdomain.deep.DeepGP`."""

from __future__ import annotations

from typing import Any


def draw_for_step(model: Any, step: int) -> None:
    """Tell a model with random draws in its loss the number of the step, if it has ``set_step``.

    All evaluations of one step then use the same draws, and so does a fit that is resumed there.
    """
    set_step = getattr(model, "set_step", None)
    if set_step is not None:
        set_step(step)
