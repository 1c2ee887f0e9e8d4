"""How the site is built: Sphinx, MyST for pages in Markdown, Furo for their looks. ``make docs`` calls it.

Nothing is fetched while building, and the pages fetch nothing when they are read: docs/check_links.py sees to that.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from posixpath import join, normpath
from typing import Any

import maxmargin

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))  # for command_help, which is ours
os.environ.setdefault("MPLBACKEND", "agg")

project = "maxmargin"
author = "The maxmargin developers"
copyright = author
version = release = maxmargin.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_help",
]
exclude_patterns = ["_build", "gallery/README*", "gallery/*.ipynb", "gallery/*.py"]
nitpicky = True  # a role that leads nowhere is an error, not plain text
highlight_language = "text"  # formulas and output are the blocks that name no language
suppress_warnings = ["config.cache"]  # the order of the gallery is a class, which Sphinx cannot keep

# Pages in Markdown
myst_enable_extensions = ["attrs_inline", "attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3

# The API, from docstrings. Types stand in the lists of parameters, in words; signatures are short without them.
autosummary_generate = False  # tables at the top of a page; the entries are below them, not on pages of their own
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc lists them
numpydoc_xref_param_type = False  # types are prose ("array (n, d) or None"), not names to look up
toc_object_entries_show_parents = "hide"

# The gallery: every example is run, and its figures are kept. ``-D plot_gallery=0`` shows the code alone.
EXAMPLES = [
    "demo", "certificate", "path", "regression", "ranking", "regularizers", "integration", "sequence", "segmentation",
    "multilabel", "own_model", "solvers", "bags", "latent_states", "clustering", "scenes", "parts", "detection",
    "out_of_core", "clusters",
]  # fmt: skip


class FromSimpleToLarge:
    """The order of the list above; what is not in it comes last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem
        return (EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name)


# It is made from a copy of examples/: they write pictures beside themselves, and examples/papers, whose scripts need
# data sets that have to be got first, has a page of its own.
COPIES = DOCS / "_build" / "examples"
shutil.rmtree(COPIES, ignore_errors=True)
shutil.copytree(ROOT / "examples", COPIES, ignore=shutil.ignore_patterns("papers", "*.png", "__pycache__"))

sphinx_gallery_conf = {
    "examples_dirs": "_build/examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": FromSimpleToLarge,
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "download_all_examples": False,
    "abort_on_example_error": False,
}

# Looks: the colours of the report, see src/maxmargin/report/style.css
html_theme = "furo"
html_title = f"maxmargin {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1b6ca8",
        "color-brand-content": "#1b6ca8",
        "color-brand-visited": "#1b6ca8",
        "color-foreground-primary": "#1c2430",
        "color-background-secondary": "#f5f6f8",
        "color-code-background": "#f5f6f8",
        "color-api-name": "#1c2430",
        "color-api-pre-name": "#5b6675",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6db3e8",
        "color-brand-content": "#6db3e8",
        "color-brand-visited": "#6db3e8",
        "color-foreground-primary": "#e6eaf0",
        "color-background-primary": "#12161c",
        "color-background-secondary": "#1a2029",
        "color-code-background": "#1a2029",
        "color-background-border": "#2f3843",
        "color-api-name": "#e6eaf0",
        "color-api-pre-name": "#9aa7b6",
        "color-sidebar-caption-text": "#9aa7b6",
    },
}
pygments_style = "a11y-light"  # those of other styles are too pale on grey
pygments_dark_style = "github-dark"
copybutton_selector = (
    "div.highlight-python pre, div.highlight-sh pre, div.highlight-pycon pre, div.highlight-default pre"
)
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Files of the repository that have a page on the site. Where one is included, its links to others lead to their pages.
PAGES = {
    "CHANGELOG.md": "/project/changelog.md",
    "SECURITY.md": "/project/security.md",
    "LICENCES.md": "/project/licences.md",
    "CONTRIBUTING.md": "/project/contributing.md",
    "README.md": "/index.md",
    "examples": "/gallery/index.rst",
    "examples/papers": "/project/papers.md",
    "examples/papers/README.md": "/project/papers.md",
}


def page_of(path: str) -> str | None:
    """The page on the site that shows this file of the repository."""
    if path in PAGES:
        return PAGES[path]
    folder, _, name = path.rpartition("/")
    if folder == "benchmarks/results" and name.endswith(".md"):
        return f"/performance/{name}"
    if folder == "examples" and name.endswith(".py"):
        return f"/gallery/{name.removesuffix('.py')}.rst"
    if path.startswith("docs/") and name.endswith(".md"):
        return path.removeprefix("docs")
    return None


def redirect_links(app: Any, path: Path, parent: str, content: list[str]) -> None:
    """Links of an included file are relative to where it is; turn those to files into links to pages."""
    folder = (DOCS / path).resolve().relative_to(ROOT).parent.as_posix()

    def redirected(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        page = None if re.match(r"[a-z]+:", target) else page_of(normpath(join(folder, target)))
        return f"]({page}{anchor})" if page else match[0]

    content[0] = re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", redirected, content[0])


def keep_numbers_whole(app: Any, path: Path, parent: str, content: list[str]) -> None:
    """Browsers break 1e-03 after its sign where columns are narrow, as they are in tables of results."""
    lines = content[0].split("\n")
    content[0] = "\n".join(
        re.sub(r"\b[\d.]*\de-\d+\b", r'<span class="whole">\g<0></span>', line) if line.startswith("|") else line
        for line in lines
    )


def skip_foreign(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """What an estimator has from scikit-learn is described there, what an exception or a tuple has, in Python."""
    function = thing.fget if isinstance(thing, property) else getattr(thing, "__func__", thing)
    home = getattr(function, "__module__", None)
    return True if callable(function) and not str(home).startswith("maxmargin") else None


def setup(app: Any) -> None:
    app.connect("include-read", redirect_links)
    app.connect("include-read", keep_numbers_whole)
    app.connect("autodoc-skip-member", skip_foreign)
