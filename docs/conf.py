"""Sphinx's settings: `make docs` builds the site into out/docs without a network; every warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
# PyTorch lets its threads sleep while they wait: on busy cores, waiting in a loop takes ten times the time of the work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, str(HERE / "extensions"))

from gallery_data import has_fashion  # noqa: E402

import vicinal  # noqa: E402

project = "vicinal"
author = "The vicinal authors"
version = release = vicinal.__version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "offline",
    "repository",
    "reference_pages",
    "survey",
    "benchmark_tables",
    "dark_figures",
    "site_data",
    "site_search",
]
# The reference and the pages without executing the gallery and the notebooks: `make docs-quick`.
QUICK = os.environ.get("VICINAL_DOCS") == "quick"

# Sections of the gallery, in their order.
GALLERY = ("first_maps", "labels", "over_time", "spaces", "reading")

exclude_patterns = [
    *(
        "extensions",
        "gallery",
        "data",
        "_templates",
        "**/sg_execution_times.rst",
        "sg_execution_times.rst",
        "**/.ipynb_checkpoints",
    ),
    # What sphinx-gallery writes beside its pages.
    *(f"examples/**/*.{suffix}" for suffix in ("ipynb", "py", "json", "zip")),
]
nitpicky = False
default_role = "code"
suppress_warnings = ["config.cache", "myst.mathjax", *(["myst-nb.lexer"] if QUICK else [])]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
nb_execution_mode = "off" if QUICK else "cache"
nb_execution_timeout = 240
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_cache_path = str(HERE.parent / "build" / "docs-notebooks")

autosummary_generate = False
autodoc_typehints = "none"
autodoc_default_options = {"inherited-members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"/plot_",
    "plot_gallery": "False" if QUICK else "True",
    "subsection_order": [f"gallery/{name}" for name in GALLERY],
    "ignore_pattern": r"__init__\.py" if has_fashion() else r"__init__\.py|plot_fashion\.py",
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "image_scrapers": ("dark_figures.scrape",),
    "reference_url": {"vicinal": None},
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("vicinal",),
    "min_reported_time": 1,
    "thumbnail_size": (400, 300),
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "vicinal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "vicinal"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
html_sidebars = {"benchmarks": [], "equations": [], "index": []}
copyright = "The vicinal authors, BSD 3-Clause license"
