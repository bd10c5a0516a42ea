"""What :func:`fit_collapsed` keeps after each pass, to go on from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from ..models import CollapsedSVGP
from ..models.sites import Sites
from ..sphere._typing import Array
from ..streaming.archives import FORMAT, read_archive, write_archive


class PassState(NamedTuple):
    """How far a fit had come.

    :ivar elbos: Of the passes that were made.
    :ivar share: The size of the next step.
    """

    elbos: tuple[float, ...]
    share: float


class PassCheckpoint:
    """The file ``state.npz`` of a folder: parameters, sites and bounds.

    :raises ValueError: If there is a file already, and it is not to be read.
    """

    def __init__(self, folder: Path, model: CollapsedSVGP, *, resume: bool) -> None:
        self._path, self._model = folder / "state.npz", model
        if self._path.exists() and not resume:
            raise ValueError(
                f"checkpoint_dir: {folder} holds the state of a fit already; pass resume=True to "
                "go on from it, or another folder."
            )

    def _header(self) -> dict[str, Any]:
        parameters = gpflow.utilities.parameter_dict(self._model)
        return {
            "format": FORMAT,
            "parameters": {
                path: list(p.shape)
                for path, p in parameters.items()
                if isinstance(p, gpflow.Parameter)
            },
        }

    def save(
        self,
        model: CollapsedSVGP,
        variables: Sequence[tf.Variable],
        elbos: Sequence[float],
        share: float,
    ) -> None:
        """Keep the model as it is before the next pass. The chief writes."""
        if not model.workers.is_chief:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Array] = {
            "header": np.array(json.dumps(self._header())),
            "elbos": np.array(elbos),
            "share": np.array(share),
        }
        for number, parameter in enumerate(model.parameters):
            arrays[f"parameter_{number}"] = parameter.unconstrained_variable.numpy()
        for name, value in zip(Sites._fields, model.sites, strict=True):
            arrays[f"sites_{name}"] = np.asarray(value)
        write_archive(self._path, arrays)

    def load(self) -> PassState | None:
        """Put the model where a fit had been; None if there is no file.

        :raises ValueError: If the file is of another model.
        """
        if not self._path.exists():
            return None
        arrays = read_archive(self._path)
        wrong = f"checkpoint_dir: {self._path} is of another model; remove it, or pass another."
        if json.loads(str(arrays["header"])).get("parameters") != self._header()["parameters"]:
            raise ValueError(wrong)
        for number, parameter in enumerate(self._model.parameters):
            parameter.unconstrained_variable.assign(arrays[f"parameter_{number}"])
        try:
            self._model.assign_sites(Sites(*(arrays[f"sites_{name}"] for name in Sites._fields)))
        except ValueError as error:
            raise ValueError(wrong) from error
        return PassState(tuple(arrays["elbos"].tolist()), float(arrays["share"]))
