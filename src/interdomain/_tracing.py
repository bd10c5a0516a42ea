"""How this library's functions become graphs: they are traced as they are, without AutoGraph.

AutoGraph rewrites Python functions before they are traced, so that a Python ``if`` or ``for`` may
depend on a tensor. Nothing here needs that, and rewriting takes longer than tracing. Four things
follow, all of them in this file:

* :func:`leave_unconverted`: in a ``tf.function`` of a user, AutoGraph calls the functions of this
  library and does not rewrite them.
* :class:`Traced`: what the library compiles itself. It is traced without AutoGraph, and once more
  with it where the code of a user turns out to need it.
* :func:`python_errors`: errors of Python code in a graph are raised as they are.
* :func:`map_fn` and :func:`map_dataset`, for the two operations of TensorFlow that bring AutoGraph
  back in.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, TracebackType
from typing import Any, TypeVar

import tensorflow as tf

from ._graph_memory import freed_with_its_graph

Function = TypeVar("Function", bound=Callable[..., Any])

_LIBRARY = __name__.partition(".")[0]
_FRAMEWORKS = (_LIBRARY, "tensorflow", "tensorflow_probability", "gpflow", "check_shapes")
_CALLS_USER_CODE = "_calls_user_code"


def calls_user_code(function: Function) -> Function:
    """Mark a function that calls code that a user may have written, such as a likelihood.

    AutoGraph may convert the marked function, so that it reaches the user's code.
    """
    setattr(function, _CALLS_USER_CODE, True)
    return function


def loaded_modules(package: str) -> list[str]:
    """The names of a package and of those of its modules that are already imported. Nothing is
    imported to find them, because that would load subpackages that are imported on demand.
    """
    return sorted(name for name in sys.modules if name == package or name.startswith(f"{package}."))


def leave_unconverted(package: str) -> None:
    """Have AutoGraph call the functions of a package, and of its subpackages, as they are.

    Every function and method gets the mark that ``tf.autograph.experimental.do_not_convert`` puts
    on what it returns. The functions stay the same objects: dispatchers, pickles and tracebacks do
    not change. Those that :func:`calls_user_code` are left out.
    """
    mark = _mark_of_do_not_convert()
    for name in loaded_modules(package):
        for function in _functions_of(vars(sys.modules[name]), name):
            if not hasattr(function, _CALLS_USER_CODE):
                function.__dict__.update(mark)


def _mark_of_do_not_convert() -> dict[str, Any]:
    def nothing() -> None:
        """Only to be decorated."""

    marked: Any = tf.autograph.experimental.do_not_convert(nothing)
    return {name: value for name, value in vars(marked).items() if name != "__wrapped__"}


def _functions_of(namespace: Mapping[str, Any], module: str) -> Iterator[FunctionType]:
    """The functions that a module or class defines, those of its classes and properties included;
    not what it imports."""
    for value in list(namespace.values()):
        if inspect.isclass(value):
            if value.__module__ == module:
                yield from _functions_of(vars(value), module)
            continue
        if isinstance(value, property):
            accessors: list[Any] = [value.fget, value.fset, value.fdel]
        elif isinstance(value, (classmethod, staticmethod)):
            accessors = [value.__func__]
        else:
            accessors = [getattr(value, "func", value)]  # that of a functools.cached_property
        for function in accessors:
            if isinstance(function, FunctionType) and function.__module__ == module:
                yield function


def map_fn(function: Callable[[Any], Any], elements: Any, **options: Any) -> Any:
    """``tf.map_fn`` of a function that AutoGraph leaves as it is."""
    return tf.map_fn(tf.autograph.experimental.do_not_convert(function), elements, **options)


def map_dataset(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    """``Dataset.map`` of a function that AutoGraph leaves as it is."""
    return dataset.map(tf.autograph.experimental.do_not_convert(function))


@contextmanager
def python_errors() -> Iterator[None]:
    """
    :raises ValueError: In place of TensorFlow's error for one that Python code inside of a compiled
        function raised.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = re.search(r"^ValueError: (.+)$", error.message, re.MULTILINE)
        if found is None:
            raise
        raise ValueError(found[1]) from error


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A ``tf.function`` without AutoGraph.

    TensorFlow warns about code that is traced again and again, but code that serves many models has
    to be. The function is wrapped in a partial function, which TensorFlow cannot recognise.
    """
    traced = functools.partial(freed_with_its_graph(function))
    return tf.function(traced, autograph=False, **options)


_operation_by_operation = ContextVar("operation_by_operation", default=False)


@contextmanager
def operation_by_operation() -> Iterator[None]:
    """Within this context, eager calls of functions that this library would compile are evaluated
    operation by operation. This is faster where a model, or a set of features, is evaluated only a
    few times before it changes, so that tracing would take longer.
    """
    token = _operation_by_operation.set(True)
    try:
        yield
    finally:
        _operation_by_operation.reset(token)


def is_operation_by_operation() -> bool:
    """Whether it is called within :func:`operation_by_operation`, and in no graph."""
    return _operation_by_operation.get() and tf.executing_eagerly()


def once_per_shape(function: Function) -> Function:
    """Decorate a function that graphs call many times with tensors of the same shapes.

    Each shape is traced once, and graphs call the traced function. Eager calls are left as they
    are. The arguments are tensors (nested as in ``tf.nest``) or None; the function must not use
    other tensors or variables.
    """

    @functools.lru_cache(maxsize=64)
    def traced(specs: tuple[Any, ...]) -> Any:
        def flat(*tensors: tf.Tensor) -> Any:
            given = iter(tensors)
            return function(
                *tf.nest.map_structure(lambda s: None if s is None else next(given), specs)
            )

        return compiled(flat, input_signature=[s for s in tf.nest.flatten(specs) if s is not None])

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return function(*arguments)
        specs = tf.nest.map_structure(
            lambda value: None if value is None else tf.TensorSpec(value.shape, value.dtype),
            arguments,
        )
        tensors = [value for value in tf.nest.flatten(arguments) if value is not None]
        return traced(specs)(*tensors)

    return called  # type: ignore[return-value]


class Traced:
    """A compiled function that calls code which a user may have written.

    It is traced without AutoGraph. If the user's code cannot be traced that way (because of an
    ``if`` on a tensor, or a loop over one), it is traced again, and AutoGraph converts that code
    alone. Later calls do this at once.

    :param build: A function that takes the user's function and returns the function to be compiled,
        which calls it.
    :param user_function: The function that may have to be converted. :func:`leave_unconverted` must
        not have marked it, so that AutoGraph can reach it.
    :param options: Options of ``tf.function``.
    :raises Exception: At a call, what tracing raises. If the user's code cannot be traced either
        way, the error of that code, beginning with the line where it occurs.
    """

    def __init__(
        self,
        build: Callable[[Callable[..., Any]], Callable[..., Any]],
        user_function: Callable[..., Any],
        **options: Any,
    ) -> None:
        self._build, self._user_function, self._options = build, user_function, options
        self._needs_autograph = False
        self._function, self._failures = self._compile()

    def __call__(self, *arguments: Any) -> Any:
        """The compiled function's value."""
        return self._attempt(lambda function: function(*arguments))

    @property
    def function(self) -> Any:
        """The ``tf.function`` that was traced last, which a SavedModel can hold."""
        return self._function

    def concrete_function(self, *specs: tf.TensorSpec) -> Any:
        """The concrete function for such arguments; of an ``input_signature``, for none."""
        return self._attempt(lambda function: function.get_concrete_function(*specs))

    def _attempt(self, use: Callable[[Any], Any]) -> Any:
        self._failures.clear()
        try:
            return use(self._function)
        except TypeError as error:  # of an `if`, a loop, len() or int() on a tensor
            if self._needs_autograph or not self._failures:
                raise
            original = error
        self._needs_autograph = True
        function, failures = self._compile()
        try:
            value = use(function)
        except Exception:
            if not failures:
                raise  # it can be traced, and fails when it is computed
            self._needs_autograph = False
            raise _with_own_line(original) from original
        self._function, self._failures = function, failures
        return value

    def _compile(self) -> tuple[Any, list[BaseException]]:
        user_function = self._user_function
        if self._needs_autograph:
            user_function = tf.function(user_function, autograph=True)
        built = self._build(user_function)
        failures: list[BaseException] = []

        def traced(*arguments: Any) -> Any:
            failures.clear()
            try:
                return built(*arguments)
            except Exception as error:
                failures.append(error)
                raise

        return compiled(traced, **self._options), failures


def _with_own_line(original: Exception) -> Exception:
    """The original error, its message with the line of the user's code on top."""
    line = _line_of_user(original.__traceback__)
    try:
        return type(original)(f"{line}{original}\n(AutoGraph could not convert this code either.)")
    except Exception:  # an error of the user's own, with other arguments
        return original


def _line_of_user(trace: TracebackType | None) -> str:
    """The innermost line that is none of a framework's, as "file:line, in function: code"."""
    for frame, number in reversed(list(traceback.walk_tb(trace))):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _FRAMEWORKS:
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            return f"{file}:{number}, in {name}: {linecache.getline(file, number).strip()}\n"
    return ""
