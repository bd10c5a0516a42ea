"""Calls of constructors with one argument wrong, and what comes of them."""

from __future__ import annotations

import inspect
import re
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.arguments.table import TABLE

SECONDS = 5


class Outcome(NamedTuple):
    """:param kind: "named", "unnamed", "foreign", "accepted" or "hung"."""

    constructor: str
    argument: str
    wrong: str
    kind: str
    message: str

    def __str__(self) -> str:
        call = f"{self.constructor}({self.argument}: {self.wrong})"
        return f"{call} is {self.kind}: {self.message[:200]}"


class _TooLong(BaseException):
    pass


def _stop(*_: Any) -> None:
    raise _TooLong


def good_arguments(name: str) -> dict[str, Any]:
    make, arguments = TABLE[name]
    known = inspect.signature(make).parameters
    return {key: argument.good() for key, argument in arguments.items() if key in known}


def outcomes(name: str) -> Iterator[Outcome]:
    """Of each argument and each of its wrong values."""
    make, arguments = TABLE[name]
    known = inspect.signature(make).parameters
    for key, argument in arguments.items():
        if key not in known:
            continue
        for label, value in argument.wrong.items():
            yield Outcome(name, key, label, *_outcome(make, good_arguments(name), key, value))


def _outcome(make: Any, arguments: dict[str, Any], key: str, value: Any) -> tuple[str, str]:
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    try:
        make(**(arguments | {key: value}))
    except (ValueError, TypeError) as error:
        named = re.search(rf"\b{re.escape(key)}\b", str(error))
        return ("named" if named else "unnamed"), f"{type(error).__name__}: {error}"
    except _TooLong:
        return "hung", ""
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "accepted", repr(value)[:100]


def count(found: list[Outcome]) -> Counter[str]:
    return Counter(outcome.kind for outcome in found)
