"""The site: `make docs`. Reads and fetches nothing outside of this repository."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

import interdomain  # noqa: E402
from tools.site import benchmark_pages, for_the_site, gallery, reference  # noqa: E402

project = "interdomain"
author = "The interdomain developers"
copyright = author
version = release = interdomain.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_design",
    "tools.site.for_the_site",
]
exclude_patterns = ["examples/*"]  # shown on the pages of the reference
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # `make notebooks` executes; the stored notebooks are shown
nb_merge_streams = True  # the lines that a cell prints are one text
nitpicky = True
# Other projects' names: their inventories would have to be downloaded.
nitpick_ignore_regex = [
    (r"py:.*", rf"{package}(\..*)?")
    for package in (
        "gpflow",
        "gpflux",
        "tensorflow",
        "tf",
        "tf_keras",
        "numpy",
        "np",
        "check_shapes",
        "sklearn",
    )
] + [
    # Attributes that a constructor sets are described with its parameters.
    (r"py:attr", r"(\w+\.)?\w+"),
    (r"py:meth", "_convert_to_tensor_fn"),  # in a docstring of GPflux
    (r"py:.*", r"(matplotlib|collections|abc|typing|pathlib)\..*"),
    (r"py:.*", r"(ValueError|TypeError|RuntimeError|OSError|IndexError|NotImplementedError)"),
]

autodoc_typehints = "none"  # the descriptions of the parameters say it in words
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = "interdomain"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
html_sidebars = {"index": [], "start": []}


def write_pages(app, config) -> None:
    """Write the pages made from notebooks, stored results and the package, before Sphinx reads."""
    gallery.write(DOCS / "gallery")
    benchmark_pages.write(DOCS / "benchmarks")
    reference.write(DOCS / "reference", DOCS)
    for_the_site.copy_pages(ROOT, DOCS)


def public_bases(app, name, kind, options, bases) -> None:
    """Replace the bases of a class by public names; private bases by their own bases."""
    bases[:] = [
        f":py:class:`{'~' * base.startswith('interdomain.')}{base}`"
        if isinstance(base, str)
        else base
        for base in reference.public_bases(bases)
    ]


def setup(app) -> None:
    app.connect("autodoc-process-bases", public_bases)
    app.connect("config-inited", write_pages)
