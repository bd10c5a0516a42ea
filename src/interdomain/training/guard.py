"""Returns a model to the last parameters with a finite loss when a step fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf

from .._tracing import python_errors
from .results import NonFiniteError

# What is raised in place of a NaN: by the factorisations of some TensorFlow versions, and by
# gpflow.Parameter.assign.
_FAILED_FACTORISATION = "Cholesky decomposition was not successful"
_RAISED_FOR_NAN = {
    _FAILED_FACTORISATION: "a matrix factorisation failed",
    "not invertible": "a matrix factorisation failed",
    "has NaN or Inf": "an updated parameter is not finite",
}


class NumericalBreakdown(Exception):
    """The error for a non-finite number; its message is the reason."""


def is_failed_factorisation(error: Exception) -> bool:
    """Whether an error is that of a Cholesky factor that does not exist."""
    return _FAILED_FACTORISATION in str(error)


@contextmanager
def tensorflow_errors_as_breakdowns() -> Iterator[None]:
    """Turn the errors that TensorFlow or GPflow raise because of a NaN into a breakdown.

    :raises NumericalBreakdown: In place of such an error.
    :raises ValueError: If Python code in a compiled loss raised one, for instance because the rows
        are not those of the first pass.
    """
    try:
        with python_errors():
            yield
    except tf.errors.InvalidArgumentError as error:
        for raised, reason in _RAISED_FOR_NAN.items():
            if raised in str(error):
                raise NumericalBreakdown(reason) from error
        raise


class LastGood:
    """
    The last values of ``variables`` at which the loss was finite.

    Reading a variable shares its buffer, and TensorFlow copies the buffer only when an update would
    write into it: keeping costs at most one copy of the parameters per step.

    :ivar checkpoint: the path of the last checkpoint, for the error's message.
    """

    def __init__(self, variables: Sequence[tf.Variable], step: int, checkpoint: str | None) -> None:
        self._variables = tuple(variables)
        self.checkpoint = checkpoint
        self.keep(self.present_values(), step)

    def present_values(self) -> list[tf.Tensor]:
        """The present values, to be kept once their loss is known to be finite."""
        return [variable.read_value() for variable in self._variables]

    def keep(self, values: Sequence[tf.Tensor], step: int) -> None:
        """Remember ``values``, the ones after the update of ``step``, as good."""
        self._values = values
        self._step = step

    def restore(self) -> None:
        """Give the variables the remembered values again."""
        for variable, value in zip(self._variables, self._values, strict=True):
            variable.assign(value)

    @contextmanager
    def restored_on_breakdown(self, step: int | None = None) -> Iterator[None]:
        """
        Restore the good values if the ``with`` block raises a :class:`NumericalBreakdown`.

        :param step: the step that the block tries; None for the one after the remembered values.
        :raises NonFiniteError: in place of a :class:`NumericalBreakdown`.
        """
        try:
            yield
        except NumericalBreakdown as error:
            self.restore()
            step = self._step + 1 if step is None else step
            raise NonFiniteError(str(error), step, self._step, self.checkpoint) from error
