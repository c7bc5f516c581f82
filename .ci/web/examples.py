"""Checks that the examples in YAML are YAML. An extension of Sphinx."""

import yaml
from docutils import nodes
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def check(app, doctree):
    """Warns of each example that cannot be read, which fails the build."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") == "yaml":
            try:
                yaml.safe_load(block.astext())
            except yaml.YAMLError as error:
                LOG.warning("an example is no YAML: %s", " ".join(str(error).split()), location=block)


def setup(app):
    """Tells Sphinx of the extension."""
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
