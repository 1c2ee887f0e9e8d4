"""Reading pages that reports have written: whether they are whole, and what they say."""

import json
import re
from html.parser import HTMLParser
from importlib import resources

_VOID = {"meta", "input", "hr", "br", "img"}


class Reader(HTMLParser):
    """Complains about tags that are not closed in order, and keeps tables, text and attributes."""

    def __init__(self, page):
        super().__init__()
        self.open, self.attributes, self.tags, self.rows, self.text, self.scripts = [], [], [], [], [], []
        self.table_of = []  # the number of the table of each row
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "tr":
            self.rows.append([])
            self.table_of.append(self.tags.count("table"))
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def table(self, *head):
        """The rows of the table with this head (or one that begins so), by the name in their first cells."""
        start = next(i for i, row in enumerate(self.rows) if row[: len(head)] == list(head))
        mine = [row for row, number in zip(self.rows, self.table_of, strict=True) if number == self.table_of[start]]
        return {row[0]: row[1:] for row in mine[1:]}

    @property
    def curves(self):
        """The numbers of the charts that the script draws."""
        return [json.loads(value) for key, value in self.attributes if key == "data-chart"]


def script():
    return resources.files("maxmargin.report").joinpath("chart.js").read_text(encoding="utf-8")


def check_self_contained(page):
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed"} & set(reader.tags)
    assert not {"href", "srcset", "xlink:href", "action"} & {key for key, _ in reader.attributes}
    assert all(value.startswith("data:image/") for key, value in reader.attributes if key == "src")
    assert not any(key.startswith("on") for key, _ in reader.attributes)
    assert "".join(reader.scripts) in ("", script())  # ours, and no other
    assert not re.search(r"https?://|url\(|@import", page)
    return reader
