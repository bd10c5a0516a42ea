"""Pages of the site, one for each public name of the lists `__all__`, so that none is missing.

Sphinx's autodoc renders the docstrings. Each page also lists the guides and notebooks whose
examples use the name, which a search of their text finds.
"""

from __future__ import annotations

import abc
import inspect
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import indent
from types import ModuleType

import interdomain

ROOT = Path(__file__).parents[2]

OTHERS = (
    "Module, Kernel, InducingVariables, BayesianModel, GPModel, AbstractPosterior, LinearOperator, "
    "LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorLowRankUpdate, "
    "LinearOperatorBlockDiag, PathLike, Axes, Callback, object, BaseException, tuple, dict, list, "
    "MultiOutputMixin, RegressorMixin, ClassifierMixin, BaseEstimator"
)
"""Classes of other packages, which document their members."""


TOP = "interdomain"
"""The owner of the functions at the top, which are described nowhere else."""


def modules() -> list[str]:
    """The public modules, the package itself first."""
    names = (n for n in interdomain.__all__ if isinstance(getattr(interdomain, n), ModuleType))
    return [TOP, *sorted(names)]


def module(name: str) -> ModuleType:
    return import_module(qualified(name))


def qualified(owner: str, *name: str) -> str:
    """The full name, as Python imports it."""
    return ".".join([TOP, *([] if owner == TOP else [owner]), *name])


def names_of(owner: str) -> list[str]:
    """The public names of a module, without the functions at the top."""
    top = [n for n in interdomain.__all__ if inspect.isfunction(getattr(interdomain, n))]
    return top if owner == TOP else [n for n in module(owner).__all__ if n not in top]


def public_names() -> Iterator[tuple[str, str]]:
    """The pairs of a module and a public name."""
    for owner in modules():
        for name in names_of(owner):
            yield owner, name


def directive(owner: str, name: str) -> str:
    """The directive of autodoc for one name."""
    value = getattr(module(owner), name)
    options = []
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        options += [":members:", ":show-inheritance:"]
        if owner != "deep":  # its classes inherit a hundred members of tf_keras
            options.append(f":inherited-members: {OTHERS}")
        # Scikit-learn adds these methods to each estimator, and describes them.
        routing = re.compile(r"set_\w+_request|get_metadata_routing")
        routed = [member for member in dir(value) if routing.fullmatch(member)]
        if routed:
            options.append(f":exclude-members: {', '.join(routed)}")
    elif callable(value) and (inspect.isfunction(value) or hasattr(value, "__wrapped__")):
        kind = "autofunction"
    elif callable(value):  # a dispatcher
        kind = "autodata"
        options.append(":no-value:")
    else:
        kind = "autodata"
    if _first_owner(name, value) != owner:
        options.append(":no-index:")
    lines = [f".. {kind}:: {name}", *(f"   {option}" for option in options)]
    return "\n".join(lines)


def public_bases(bases: tuple[type, ...] | list[type]) -> list[type | str]:
    """The bases, each once: public classes as names, and classes of other packages as they are.

    The class of another package is a name as well if a public class has the same short name.
    """
    public = {pair: getattr(module(pair[0]), pair[1]) for pair in public_names()}
    names = {value: qualified(*pair) for pair, value in public.items()
             if inspect.isclass(value)}  # fmt: skip
    found: dict[type | str, None] = {}
    for base in (getattr(base, "__origin__", base) for base in bases):  # Generic[...] as Generic
        if base in names:
            found[names[base]] = None
        elif base.__module__.startswith("interdomain."):
            found.update(dict.fromkeys(public_bases(base.__bases__)))
        elif base.__name__ in {name for _, name in public}:
            found[f"{base.__module__}.{base.__name__}"] = None
        elif base not in (object, abc.ABC):
            found[base] = None
    return list(found) or [object]


def _first_owner(name: str, value: object) -> str:
    """The module whose page is in the index, for a name that is in several modules."""
    owners = [owner for owner in modules() if getattr(module(owner), name, None) is value]
    if TOP in owners:
        return TOP
    defined = getattr(value, "__module__", "")
    return next((o for o in owners if defined.startswith(f"interdomain.{o}")), owners[0])


def _typed(owner: str, name: str) -> str:
    """The name with its module, as users type it."""
    return f"idm.{name}" if owner == TOP else f"{owner}.{name}"


def uses(name: str, sources: dict[str, str]) -> list[str]:
    """The pages whose text has `owner.name`, where the owner is the module."""
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    return [page for page, text in sources.items() if pattern.search(text)]


def examples(docs: Path) -> dict[tuple[str, str], str]:
    """The sections of `docs/examples/<module>.md`, by the module and each name in their heading."""
    found = {}
    for path in (docs / "examples").glob("[a-z]*.md"):
        sections = re.split(r"^## (.+)$", path.read_text(), flags=re.MULTILINE)[1:]
        for heading, text in zip(sections[::2], sections[1::2], strict=True):
            for name in heading.split():
                found[path.stem, name] = text.strip()
    return found


def _as_rst(section: str) -> str:
    """The blocks of programs and outputs of a section, as reStructuredText."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return "\n\n".join(
        f".. code-block:: {language}\n\n{indent(text.rstrip(), '   ')}" for language, text in blocks
    )


def has_example(owner: str, name: str, pages: dict[str, str]) -> bool:
    """Whether a page, or the docstring of a name or of its methods, has an example."""
    value = getattr(module(owner), name)
    docstrings = [value.__doc__ or ""]
    if inspect.isclass(value):
        docstrings += [inspect.getdoc(member) or "" for member in vars(value).values()]
    return any(">>>" in text for text in docstrings) or bool(uses(_typed(owner, name), pages))


def sources(docs: Path) -> dict[str, str]:
    """The programs of every page whose examples are run, by the place of the page in the site."""
    found = {}
    for path in sorted([docs / "start.md", *docs.glob("guides/*.md"), *docs.glob("which/*.md")]):
        blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.M | re.S)
        found[f"/{path.relative_to(docs).with_suffix('')}"] = "\n".join(blocks)
    for path in sorted((ROOT / "notebooks").glob("[!_]*.py")):
        code = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
        found[f"/gallery/{path.stem}"] = code
    return found


def page(owner: str, name: str, pages: dict[str, str], example: str | None) -> str:
    """The reStructuredText of one page."""
    title = qualified(owner, name).removeprefix(f"{TOP}.")
    parts = [
        title + "\n" + "=" * len(title),
        f".. currentmodule:: {qualified(owner)}",
        directive(owner, name),
    ]
    if example:
        parts += ["Example\n-------", _as_rst(example)]
    used = uses(_typed(owner, name), pages)
    if used:
        parts.append("Used in\n-------")
        parts.append("\n".join(f"* :doc:`{place}`" for place in used))
    return "\n\n".join(parts) + "\n"


def summary(value: object) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z`])", paragraph)[0].removesuffix(":")


def listing(title: str, introduction: str, entries: dict[str, tuple[str, str]]) -> str:
    """The reStructuredText of a page that lists pages: the title and a sentence for each place."""
    lines = [f"* :doc:`{name} <{place}>`: {text}" for place, (name, text) in entries.items()]
    toctree = [".. toctree::", "   :hidden:", ""]
    for place, (name, _) in entries.items():  # the sidebar is too narrow for `interdomain.`
        short = name.removeprefix(f"{TOP}.")
        toctree.append(f"   {place}" if place == name else f"   {short} <{place}>")
    parts = [title + "\n" + "=" * len(title), introduction, "\n".join(lines), "\n".join(toctree)]
    return "\n\n".join(parts) + "\n"


def write(folder: Path, docs: Path) -> None:
    """Write all pages, into a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    pages, shown = sources(docs), examples(docs)
    listed = {}
    for owner in modules():
        (folder / owner).mkdir(parents=True)
        names = names_of(owner)
        for name in names:
            (folder / owner / f"{name}.rst").write_text(
                page(owner, name, pages, shown.get((owner, name)))
            )
        title = qualified(owner)
        entries = {name: (name, summary(getattr(module(owner), name))) for name in names}
        described = f".. automodule:: {title}\n   :no-members:"
        (folder / owner / "index.rst").write_text(listing(title, described, entries))
        listed[f"{owner}/index"] = title, summary(module(owner))
    others = {
        "/limits": ("Limits", "What a model recovers from, and when it raises or warns."),
        "/papers": ("Papers", "What was reproduced, and what was not."),
        "/changes": ("Changes", "The versions, with a table of old and new names."),
        "/contributing": ("Contributing", "How to set up, test and change the repository."),
    }
    introduction = "Every public name. Import the package by ``import interdomain as idm``."
    (folder / "index.rst").write_text(listing("Reference", introduction, listed | others))
