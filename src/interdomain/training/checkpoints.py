"""The checkpoints of a fit: the last three in a folder, written and found again by TensorFlow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from .._arguments import warn

_KEPT = 3
_DIFFERENCES = 4  # the most that a message names
_FIT = "fit/.ATTRIBUTES/VARIABLE_VALUE"  # TensorFlow's key of the variable "fit"

# The name of the first line of a description. Descriptions without it do not contain the kernel,
# the likelihood, the mean function and the rows.
FORMAT = "format"


class Checkpoints:
    """The last three checkpoints of one fit, ``step-<number>`` in a folder. TensorFlow writes each
    checkpoint completely or not at all.

    :param directory: the folder, which need not exist; None to write nothing.
    :param fit: the description of the fit, one ``name: value`` a line, which checkpoints must have.
    :param writes: whether this process writes the checkpoints; if False, it only reads them.
    :param trackables: the models, optimizers and variables of a checkpoint, by name.
    :ivar path: the folder, or None.
    :raises OSError: if the folder cannot be made, or is a file.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        *,
        fit: str,
        writes: bool = True,
        **trackables: Any,
    ) -> None:
        self.path = None if directory is None else Path(directory)
        self._latest: str | None = None
        self._fit, self._writes = fit, writes
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        if self.path is None:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        text = tf.Variable(fit, trainable=False)
        self._checkpoint = tf.train.Checkpoint(step=self._step, fit=text, **trackables)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self.path), max_to_keep=_KEPT, checkpoint_name="step"
        )

    @property
    def step(self) -> int:
        """The step of the checkpoint that was restored or written last; 0 before."""
        return int(self._step)

    @property
    def latest(self) -> str | None:
        """The path of the last good checkpoint, or None."""
        if self.path is None or self._writes:
            return self._latest
        latest: str | None = tf.train.latest_checkpoint(str(self.path))
        return latest

    def restore(self) -> bool:
        """Restore the newest checkpoint that can be read. A warning names damaged checkpoints,
        which are skipped.

        :returns: whether a checkpoint was restored.
        :raises ValueError: if it is of another fit, or no checkpoint of the folder can be read.
        """
        damages: list[str] = []
        for prefix in self._prefixes():
            try:
                reader = tf.train.load_checkpoint(prefix)
                fit = reader.get_tensor(_FIT).decode() if reader.has_tensor(_FIT) else None
                if fit == self._fit:
                    self._checkpoint.restore(prefix).assert_existing_objects_matched()
            except Exception as error:  # an error of TensorFlow, IndexError, RuntimeError, ...
                damages.append(f"{Path(prefix).name}: {_reason(error)}")
                continue
            if fit != self._fit:
                raise ValueError(self._refusal(fit))
            if damages:
                warn(
                    f"checkpoint_dir: {self.path}: damaged checkpoints are skipped "
                    f"({'; '.join(damages)}); the fit resumes from step {self.step}."
                )
            self._latest = prefix
            return True
        if damages:
            raise ValueError(
                f"checkpoint_dir: no checkpoint in {self.path} can be read "
                f"({'; '.join(damages)}); put back a copy of the folder, or pass another one."
            )
        return False

    def _refusal(self, fit: str | None) -> str:
        """The message for a checkpoint of another fit, whose description is ``fit``."""
        are, nothing = self._fit.splitlines(), "it was not written by a fit"
        were = (fit or nothing).splitlines()
        if fit is not None and are[0].startswith(f"{FORMAT}: ") and are[0] != were[0]:
            return (
                f"checkpoint_dir: {self.path} holds a checkpoint of another version of "
                "interdomain, which does not say what is compared now (the kernel, the likelihood, "
                "the mean function and the rows); pass another folder. tf.train.Checkpoint(model="
                "model).restore(path) reads the parameters of the checkpoint."
            )
        before, now = _differences(were, are), _differences(are, were)
        return (
            f"checkpoint_dir: {self.path} holds a checkpoint of another fit ({before}; now {now}); "
            "pass what was passed then, or another folder."
        )

    def save(self, step: int) -> None:
        """Write the checkpoint of a step, and remove all but the last three.

        :raises OSError: if it cannot be written; earlier checkpoints are unchanged.
        """
        if self.path is None or not self._writes:
            return
        self._step.assign(step)
        try:
            self._latest = self._manager.save(checkpoint_number=self.step)
        except (OSError, tf.errors.OpError) as error:
            good = f"the last good one is {self._latest}, from which a new call resumes."
            remedy = good if self._latest else "pass another folder."
            raise OSError(
                f"checkpoint_dir: {self.path}: the checkpoint of step {step} was not written "
                f"({_reason(error)}); {remedy}"
            ) from error
        finally:  # a full disk leaves this folder
            shutil.rmtree(self.path / f"step-{step}_temp", ignore_errors=True)

    def _prefixes(self) -> list[str]:
        """The paths of the checkpoints in the folder, the newest first: the checkpoints in
        TensorFlow's list; if the list is damaged, all checkpoints with an index file."""
        if self.path is None:
            return []
        if self._manager.checkpoints:
            return list(reversed(self._manager.checkpoints))
        ends = [path.stem.partition("-")[2] for path in self.path.glob("step-*.index")]
        numbers = [int(end) for end in ends if end.isdecimal()]  # other names are files of the user
        return [str(self.path / f"step-{number}") for number in sorted(numbers, reverse=True)]


def _differences(lines: Sequence[str], others: Sequence[str]) -> str:
    """The first lines that are not among the lines ``others``."""
    different = [line for line in lines if line not in others]
    more = len(different) - _DIFFERENCES
    shown = different[:_DIFFERENCES] + [f"{more} more"] * (more > 0)
    return "; ".join(shown) or "-"


def _reason(error: Exception) -> str:
    """The first line of an error, without the prefix of TensorFlow."""
    return (str(error) or type(error).__name__).splitlines()[0].split("}} ")[-1]
