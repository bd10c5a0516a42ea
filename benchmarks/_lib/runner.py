"""The base class and the command line of every benchmark: run its configurations, print its table.

A benchmark is a class with two to four methods; `main` is its command line. Benchmarks of a paper
have `benchmarks.papers.<paper>.<name>` in place of `benchmarks.<name>`:

    python -m benchmarks.<name>              run the configurations without a record in
                                             results/<name>.jsonl, print the table.
    python -m benchmarks.<name> --table      only print the table of the stored results.
    python -m benchmarks.<name> --rerun      run everything again.
    python -m benchmarks.<name> --short      a small version that tests whether everything works.
    python -m benchmarks.<name> --results d  store the results in folder d.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks._lib.child import from_child, module_of
from benchmarks._lib.data import DataError, add_data_argument, for_a_process
from benchmarks._lib.environment import describe_environment, load_average
from benchmarks._lib.results import RESULTS_FOLDER, Record, ResultFile, configuration_key

Arguments = argparse.Namespace
Entries = dict[str, Any]
"""The JSON values of a configuration or a result, by name."""
Configurations = Iterable[Entries]
Records = Sequence[Record]


class Benchmark(abc.ABC):
    """One question, the configurations that answer it, and the table of the answers.

    The class declares its options, each None by default. ``class Terrain(Benchmark,
    data_dir=str, models=MODELS, seeds=range, rounds=int)`` has ``--data-dir``; ``--models`` with
    some of the names, separated by commas; ``--seeds`` with numbers such as 0-4; and ``--rounds``
    with one number. Its documentation, and its name for the file of results, are those of its
    module by default.
    """

    name: str
    _options: Mapping[str, Iterable[str] | Callable[[str], Any]]

    def __init_subclass__(cls, **options: Iterable[str] | Callable[[str], Any]) -> None:
        super().__init_subclass__()
        cls._options = options
        cls.__doc__ = cls.__doc__ or sys.modules[cls.__module__].__doc__
        cls.name = vars(cls).get("name", command_of(cls).rpartition(".")[2])

    @abc.abstractmethod
    def configurations(self, arguments: Arguments) -> Configurations:
        """The configurations to run, as flat dictionaries of JSON values.

        A configuration has everything that changes what is measured (seed, split, size,
        iterations, `source_of(data_dir)`): its text is the key of its record.
        """

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        """Run one configuration and return its figures as JSON values.

        By default, call the function `measured` of the benchmark's module in its own process. Its
        arguments are the entries of the configuration by name, without `source`, and `data_dir` if
        the benchmark reads data.
        """
        measured = sys.modules[type(self).__module__].measured  # type: ignore[attr-defined]
        return dict(from_child(measured, **for_a_process(configuration, arguments)))

    @abc.abstractmethod
    def table(self, records: Records) -> str:
        """The stored results as Markdown, next to the paper's figures or the targets."""

    def draw(  # noqa: B027 - most have no picture
        self, folder: Path, records: Records, arguments: Arguments
    ) -> None:
        """Draw the pictures of the stored results into their folder, after a run; by default none.
        A DataError means that there is no picture: the configurations have reported it."""

    @classmethod
    def command(cls) -> None:
        """Run the command line and exit: the last line of a benchmark's module."""
        sys.exit(cls().main())

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run the command line; the exit status is 1 if a configuration failed."""
        arguments = self._parser().parse_args(argv)
        file = ResultFile(result_folder(arguments) / f"{self.name}.jsonl")
        status = 0 if arguments.table else run_configurations(self, arguments, file)
        records = file.records()
        print(self.table(records) if records else f"There are no results of {self.name} yet.")
        if records and not arguments.table:
            with contextlib.suppress(DataError):
                self.draw(result_folder(arguments), records, arguments)
        return status

    def stored(self, arguments: Arguments, remedy: str, **wanted: Any) -> Any:
        """The newest result whose configuration has the entries `wanted`; if there is none, a
        DataError that names the `remedy`."""
        records = ResultFile(result_folder(arguments) / f"{self.name}.jsonl").records()
        found = [one for one in records if wanted.items() <= dict(one["configuration"]).items()]
        if not found:
            raise DataError(remedy)
        return max(found, key=lambda record: str(record.get("finished_at", "")))["result"]

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {command_of(type(self))}",
            description=inspect.getdoc(type(self)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--table", action="store_true", help="only print stored results")
        parser.add_argument("--rerun", action="store_true", help="run finished configurations too")
        parser.add_argument("--short", action="store_true", help="a small version, about a minute")
        parser.add_argument(
            "--results",
            type=Path,
            default=None,
            help="folder of the .jsonl files (default: benchmarks/results; with --short: its "
            "subfolder short, which git ignores)",
        )
        for option, kind in self._options.items():
            if option == "data_dir":
                add_data_argument(parser)
                continue
            kind = indices if kind is range else kind
            parsed = kind if callable(kind) else names(tuple(kind), option)
            parser.add_argument(f"--{option.replace('_', '-')}", type=parsed)
        return parser


def command_of(kind: type[Benchmark]) -> str:
    """The module that `python -m` runs for a benchmark."""
    return module_of(kind).removesuffix(".benchmark")


def result_folder(arguments: Arguments) -> Path:
    """The folder of the results, by `--results` and `--short`."""
    if arguments.results is not None:
        return Path(arguments.results)
    return RESULTS_FOLDER / "short" if arguments.short else RESULTS_FOLDER


def run_configurations(benchmark: Benchmark, arguments: Arguments, file: ResultFile) -> int:
    """Run the configurations without a record; a failed one is reported, and run again later."""
    configurations = list(benchmark.configurations(arguments))
    finished = set() if arguments.rerun else file.finished()
    waiting = [c for c in configurations if configuration_key(c) not in finished]
    if len(waiting) < len(configurations):
        print(
            f"{benchmark.name}: {len(configurations) - len(waiting)} of {len(configurations)} "
            "configurations are finished; --rerun runs them again",
            file=sys.stderr,
        )
    import tensorflow as tf

    failures = 0
    progress = tqdm(waiting, desc=benchmark.name, unit="configuration")
    for configuration in progress:
        progress.set_postfix_str(describe(configuration))
        tf.random.set_seed(int(configuration.get("seed", 0)))
        load, start = load_average(), time.perf_counter()
        try:
            result = benchmark.run(configuration, arguments)
            record = {
                "benchmark": benchmark.name,
                "configuration": configuration,
                "result": result,
                "seconds": round(time.perf_counter() - start, 3),
                "load_before": load,
                "finished_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "environment": describe_environment(),
            }
            file.append(record)
        except DataError as error:  # the message names the remedy
            failures += 1
            tqdm.write(f"{describe(configuration)}: {error}", file=sys.stderr)
        except Exception:
            failures += 1
            tqdm.write(f"failed: {describe(configuration)}", file=sys.stderr)
            tqdm.write(traceback.format_exc(), file=sys.stderr)
    return 1 if failures else 0


def describe(configuration: Entries) -> str:
    """A configuration on one line."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items())


def indices(text: str) -> list[int]:
    """The numbers that an option such as `--splits 0-4` or `--seeds 0,2,5` names."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            numbers += list(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a list of numbers: write 0-4 or 0,2,5"
            ) from None
    return numbers


def names(choices: Sequence[str], plural: str) -> Any:
    """The type of an option that takes some of `choices`, separated by commas."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"there are no {plural} named {unknown}: choose from {', '.join(choices)}"
            )
        return chosen

    return parse
