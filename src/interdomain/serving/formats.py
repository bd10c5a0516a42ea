"""The folder of a saved model: TensorFlow's SavedModel, and a JSON file that says what is in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._arguments import short

FORMAT = 1
FILE = "interdomain.json"
_SAVED_MODEL = "saved_model.pb"


@dataclass(frozen=True)
class Metadata:
    """What is in the folder of a saved model.

    :ivar model: The class of what was saved.
    :ivar kernel: The class of the kernel that sees X; None of a deep GP whose inputs are pixels.
    :ivar likelihood: The class of the likelihood; None if there was none.
    :ivar functions: The names of the functions.
    :ivar num_columns: The number D of columns of X.
    :ivar num_outputs: The number P of outputs.
    :ivar dtype: That of X and of the predictions.
    :ivar targets_dtype: That of Y in the log density.
    :ivar row_entries: The numbers in the covariances of one row, from which
        :func:`~interdomain.serving.predict_in_batches` chooses its batches.
    :ivar versions: Of interdomain, GPflow and TensorFlow.
    :ivar format: Of the folder.
    """

    model: str
    kernel: str | None
    likelihood: str | None
    functions: tuple[str, ...]
    num_columns: int
    num_outputs: int
    dtype: str
    targets_dtype: str
    row_entries: int | None
    versions: dict[str, str]
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Into the folder of the SavedModel."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Metadata:
        """
        :raises ValueError: If this version of the library cannot read the folder.
        """
        if not folder.is_dir():
            raise ValueError(
                f"path must be the folder of a saved model, found {folder}, no folder."
            )
        try:
            found = json.loads((folder / FILE).read_text())
        except FileNotFoundError:
            other = (folder / _SAVED_MODEL).exists()
            remedy = "read it with tf.saved_model.load" if other else "pass one that holds one"
            raise ValueError(
                f"path must be a folder that interdomain.serving.save has written, found {folder} "
                f"without {FILE}; {remedy}."
            ) from None
        except ValueError as error:
            raise ValueError(_damaged(folder, f"{FILE} is no JSON ({error})")) from error
        if not isinstance(found, dict) or "format" not in found:
            raise ValueError(_damaged(folder, f"{FILE} names no format"))
        if found["format"] != FORMAT:
            raise ValueError(
                f"path: {folder} is of format {short(found['format'])}, and this version of "
                f"interdomain reads format {FORMAT}; save the model again with it."
            )
        try:
            return cls(**{**found, "functions": tuple(found["functions"])})
        except (TypeError, KeyError) as error:
            raise ValueError(_damaged(folder, f"{FILE}: {error}")) from error


def _damaged(folder: Path, what: str) -> str:
    return f"path: {folder} is damaged: {what}; save the model again."


def as_path(path: Any) -> Path:
    """:raises ValueError: Unless it is a path."""
    try:
        return Path(os.fspath(path))
    except TypeError:
        raise ValueError(f"path must be the path of a folder, found {short(path)}.") from None


def check_free(target: Path, *, overwrite: bool) -> None:
    """:raises ValueError: If something is there that must not be replaced."""
    if target.is_dir():
        if not any(target.iterdir()):
            return
        if not any((target / name).exists() for name in (FILE, _SAVED_MODEL)):
            raise ValueError(
                f"path must be a new folder, found {target} with files that are no saved model; "
                "pass another."
            )
        if not overwrite:
            raise ValueError(
                f"path must be a new folder, found a saved model in {target}; pass another, or "
                "overwrite=True."
            )
    elif target.exists():
        raise ValueError(f"path must be a new folder, found the file {target}; pass another.")


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Make a folder, completely or not at all. An existing one is replaced only at the end.

    A process that is killed may leave a hidden folder beside it. If it is killed between the two
    renamings at the end, the previous model is left under such a hidden name.

    :param write: Called with the folder to write to, which does not exist.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished, replaced = (
        target.with_name(f".{target.name}.{os.getpid()}.{ending}") for ending in ("new", "old")
    )
    try:
        write(unfinished)
        if target.exists():
            target.rename(replaced)
            try:
                unfinished.rename(target)
            except BaseException:
                replaced.rename(target)
                raise
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
