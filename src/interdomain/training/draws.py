"""Models whose loss draws random numbers, such as :class:`interdomain.deep.DeepGP`."""

from __future__ import annotations

from typing import Any


def draw_for_step(model: Any, step: int) -> None:
    """Have the loss draw what belongs to a step, if it draws anything and can be told.

    A model that can has a method ``set_step``. All evaluations of one step then draw the same, and
    so does a fit that is resumed there.
    """
    set_step = getattr(model, "set_step", None)
    if set_step is not None:
        set_step(step)
