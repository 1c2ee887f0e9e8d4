"""The README's examples, run as they stand."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf8"), flags=re.DOTALL | re.MULTILINE)


def test_readme_has_examples():
    assert BLOCKS


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_readme_example_runs(number, monkeypatch, tmp_path):
    """Each block is read from the top, so blocks before it may have set names; files go to a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "readme"}
    for i, block in enumerate(BLOCKS[: number + 1]):
        exec(compile(block, f"README.md, python block {i + 1}", "exec"), names)
