"""What :func:`fit_collapsed` keeps after each pass, to go on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

from ..models import CollapsedSVGP
from ..models.sites import Sites
from ..sphere._typing import Array
from ..streaming.archives import FORMAT, read_archive, write_archive

_OF_PASSES = "passes_"


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

    def save(self, model: CollapsedSVGP, passes: Mapping[str, Array]) -> None:
        """Keep the model as it is before the next pass, and what the passes know."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Array] = {"header": np.array(json.dumps(self._header()))}
        for number, parameter in enumerate(model.parameters):
            arrays[f"parameter_{number}"] = parameter.unconstrained_variable.numpy()
        arrays |= arrays_of_sites("sites", model.sites)
        arrays |= {f"{_OF_PASSES}{name}": value for name, value in passes.items()}
        write_archive(self._path, arrays)

    def load(self) -> dict[str, Array] | None:
        """Put the model where a fit had been; what its passes knew, or None if there is no file.

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
            self._model.assign_sites(sites_of_arrays("sites", arrays))
        except ValueError as error:
            raise ValueError(wrong) from error
        return {
            name.removeprefix(_OF_PASSES): value
            for name, value in arrays.items()
            if name.startswith(_OF_PASSES)
        }


def arrays_of_sites(name: str, sites: Sites) -> dict[str, Array]:
    """Sites as arrays of such names."""
    return {f"{name}_{k}": np.asarray(v) for k, v in zip(Sites._fields, sites, strict=True)}


def sites_of_arrays(name: str, arrays: Mapping[str, Array]) -> Sites:
    """What :func:`arrays_of_sites` was given."""
    return Sites(*(arrays[f"{name}_{k}"] for k in Sites._fields))
