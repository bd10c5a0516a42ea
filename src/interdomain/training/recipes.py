"""What :func:`fit_sgpr` and :func:`fit_collapsed` have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._arguments import integer
from ..models.rows_model import RowsModel
from .checkpoints import check_free


def check_recipe(
    model: Any,
    kind: type[RowsModel],
    *,
    num_inducing: int | None,
    max_turns: int,
    subset_size: int,
    subset_steps: int,
    checkpoint_dir: str | os.PathLike[str] | None,
    resume: bool,
) -> None:
    """
    Check the arguments that every recipe has.

    :param kind: the class that the model must be of.
    :raises ValueError: if one is wrong, or the folder is of a run that is not to be resumed.
    """
    if not isinstance(model, kind):
        other = getattr(type(model), "recipe", "fit")
        raise ValueError(
            f"model: found a {type(model).__name__}; pass an interdomain.models.{kind.__name__}, "
            f"or call interdomain.training.{other}."
        )
    if num_inducing is not None:
        integer("num_inducing", num_inducing, at_least=1)
    integer("max_turns", max_turns, at_least=0)
    integer("subset_size", subset_size, at_least=1)
    integer("subset_steps", subset_steps, at_least=1)
    if resume and checkpoint_dir is None:
        raise ValueError(
            "checkpoint_dir must be given to resume from, found None; pass the folder of the run "
            "that was interrupted, or resume=False."
        )
    if checkpoint_dir is not None and not resume:  # before time is spent on a subset
        folder = Path(checkpoint_dir)
        check_free(folder, folder / "subset", folder / "fit")
