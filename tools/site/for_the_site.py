"""A Sphinx extension that turns pages written for GitHub into pages of the site.

The pages in docs/ are plain Markdown. Their links lead to files of the repository, such as
`../benchmarks/README.md#terrain`, and their lists of pages stand in comments. This extension
replaces such a link by the page that the site makes of that file, shows the list of pages to
Sphinx, and links each public name in the text to its page in the reference. It links each picture
to its file, which small screens can enlarge, and lets names in tables break between their parts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gpflow
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.osutil import relative_uri

from tools.site import reference

REPLACEMENTS = (
    (r"\]\(\.\./((?:\.\./)*)benchmarks/README\.md#(\w+)\)", r"](\1benchmarks/\2.md)"),
    (r"\]\(\.\./((?:\.\./)*)benchmarks/README\.md\)", r"](\1benchmarks/index.md)"),
    (r"\]\(\.\./((?:\.\./)*)benchmarks/results/", r"](\1benchmarks/images/"),
    (r"\]\(\.\./((?:\.\./)*)notebooks/(\w+\.ipynb)", r"](\1gallery/\2"),
    (r"\]\(\.\./((?:\.\./)*)CHANGELOG\.md", r"](\1changes.md"),
    (r"\]\(\.\./((?:\.\./)*)CONTRIBUTING\.md", r"](\1contributing.md"),
    (r"\]\(\.\./((?:\.\./)*)notebooks\)", r"](\1gallery/index.md)"),
    (r"\]\(\.\./((?:\.\./)*)src/interdomain\)", r"](\1reference/index.rst)"),
    (r"\]\(\.\./docs/", r"](../"),  # in a notebook
    (r"<!-- toctree\n(.*?)\n-->", r"```{toctree}\n:hidden:\n\n\1\n```"),
)


COPIES = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}


def copy_pages(root: Path, docs: Path) -> None:
    """Copy pages of the repository's root into docs/, with links that lead from there."""
    for name, copy in COPIES.items():
        text = re.sub(r"\]\((?!https?:|#|docs/)", "](../", (root / name).read_text())
        (docs / copy).write_text(text.replace("](docs/", "]("))


def replace_paths(app: Any, page: str, source: list[str]) -> None:
    """Replace the repository's paths in the text of a page by the site's."""
    for pattern, replacement in REPLACEMENTS:
        source[0] = re.sub(pattern, replacement, source[0], flags=re.DOTALL)


def public_targets() -> dict[str, str]:
    """The full name of every public object, by each way in which a page may write it."""
    targets = {}
    for owner, name in reference.public_names():
        full = reference.qualified(owner, name)
        targets |= {full: full, full.replace("interdomain", "idm", 1): full}
        stock = any(hasattr(part, name) for part in (gpflow.models, gpflow.inducing_variables))
        if owner != "deep" and not stock:  # `build` is a word, and `SVGP` is GPflow's
            targets.setdefault(name, full)
    return targets


def link_names(app: Any, document: nodes.document) -> None:
    """Link each public name that a page writes as code to its page in the reference."""
    targets = public_targets()
    for node in list(document.findall(nodes.literal)):
        target = targets.get(node.astext().removesuffix("()"))
        if target and not isinstance(node.parent, (nodes.reference, nodes.title, pending_xref)):
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True
            )
            node.replace_self(link)
            link += node


PART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[.,/=_(])(?=[A-Za-z\"\[])")
"""Where a name may break: before a capital letter, and after a sign."""


def split_names(app: Any, document: nodes.document) -> None:
    """Split the code in tables into its parts, between which the style sheet allows a break."""
    for entry in document.findall(nodes.entry):
        for node in list(entry.findall(nodes.literal)):
            parts = [nodes.Text(part) for part in PART.split(node.astext())]
            node.clear()
            node += parts


def link_pictures(app: Any, document: nodes.document, page: str) -> None:
    """Link each picture to its file, except for the pictures of cards, which lead to a page."""
    for image in list(document.findall(nodes.image)):
        image.setdefault("alt", "What the program above draws")
        stored = app.env.images.get(image["uri"])
        card = any(name.startswith("sd-card") for name in image["classes"])
        if stored and not card and not isinstance(image.parent, nodes.reference):
            place = f"{app.builder.imagedir}/{stored[1]}"
            uri = relative_uri(app.builder.get_target_uri(page), place)
            link = nodes.reference("", "", refuri=uri, internal=True)
            image.replace_self(link)
            link += image


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", replace_paths)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", split_names)
    app.connect("doctree-resolved", link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
