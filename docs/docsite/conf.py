"""How Sphinx builds the site: Markdown by MyST, pages by Furo, every warning an error, nothing from the network."""

import advisor
from docsite import crosslinks

project = "gapwatch"
author = ""
version = release = advisor.__version__
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = f"gapwatch {release}"
html_show_copyright = False
html_show_search_summary = False  # pages that are opened from a directory may not fetch each other
html_show_sourcelink = False
html_copy_source = False
html_use_index = False
html_static_path = ["static"]
html_css_files = ["docsite.css"]
myst_heading_anchors = 4
smartquotes = False  # commands and options stand in the text
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]
setup = crosslinks.setup
