"""The examples in docstrings run, and print what they say."""

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import interdomain

SOURCE = Path(interdomain.__file__).parent


def _examples() -> Iterator[doctest.DocTest]:
    """The examples of every module that has a prompt in its text."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>>" in path.read_text():
            name = ".".join(["interdomain", *path.relative_to(SOURCE).with_suffix("").parts])
            for test in finder.find(import_module(name.removesuffix(".__init__")), globs={}):
                if test.examples:
                    yield test


EXAMPLES = {test.name.removeprefix("interdomain."): test for test in _examples()}
WITH_FIT = {
    "deep.model.DeepGP",
    "estimators.recommend.recommend",
    "families.sphere.free_spectrum.FreeSpectrum",
    "models.dual_svgp.model.DualSVGP",
    "tables.fitting.fit_additive",
    "estimators.race.race",
    "models.vecchia_sgpr.model.VecchiaSGPR",
}
"""The examples that take seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in WITH_FIT else ()) for n in EXAMPLES]
)
def test_example(name: str) -> None:
    """In a namespace of its own: each can be pasted."""
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(EXAMPLES[name], out=report.append)
    assert not failed, "".join(report)


def test_every_prompt_is_run() -> None:
    """None in a docstring that doctest does not find, such as that of an attribute."""
    lines = [line for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines()]
    prompts = sum(line.lstrip().startswith(">>>") for line in lines)
    assert set(EXAMPLES) >= WITH_FIT
    assert prompts == sum(len(test.examples) for test in EXAMPLES.values())
