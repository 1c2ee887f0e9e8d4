"""The command line as tests call it."""

import json

from maxmargin.cli import main


def answer(capsys, *arguments, status=0):
    """The JSON object on stdout, of which there is exactly one."""
    assert main([*map(str, arguments), "--json"]) == status
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    return json.loads(said.out), said.err


def complaint(capsys, *arguments, status=2):
    """The one line of an error."""
    assert main([*map(str, arguments)]) == status
    said = capsys.readouterr()
    assert said.out == ""
    line = said.err.splitlines()[-1]
    assert line.startswith("maxmargin: error: ")
    assert "Traceback" not in said.err
    return line
