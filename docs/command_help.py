"""The Sphinx directive ``command-help``: what ``maxmargin COMMAND --help`` prints, so that it is never out of date."""

import argparse
import os
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from maxmargin import cli


class CommandHelp(SphinxDirective):
    """Takes the name of a command, or nothing for the help of ``maxmargin`` itself."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        os.environ["COLUMNS"] = "96"  # argparse would fold lines to the terminal that calls make
        parser = cli._parser()
        if self.arguments:
            (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
            parser = commands.choices[self.arguments[0]]
        text = parser.format_help()
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
