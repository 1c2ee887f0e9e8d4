"""Examples with several labels each in svmlight text: ``label,label,… index:value …``, or no label at all."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from .errors import DataError
from .svmlight import SvmlightSource

_LABELS = re.compile(rb"^([ \t]*)([^\s:#]+(?=[\s#])|(?=[^\s#]))", re.MULTILINE)


class LabelSets(SvmlightSource):
    """Text whose rows have several labels: these are in ``sets``, row by row, once all was read; ``y`` is zero.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("1,4 1:0.5\\n2:2\\n")
    ...     source = LabelSets(SvmlightSource(path))
    ...     print([chunk.x.toarray().tolist() for chunk in source.chunks()], source.sets)
    [[[0.5, 0.0], [0.0, 2.0]]] [[1.0, 4.0], []]
    """

    sets: list[list[float]]

    def __init__(self, text: Any) -> None:
        if not isinstance(text, SvmlightSource):
            raise DataError("Rows with several labels are read from svmlight text only, such as 1,4 3:0.5.")
        vars(self).update(vars(text))

    def _walk(self) -> Generator[tuple[int, bytearray, int], None, None]:
        """The text with a zero in the place of labels, as long as they were: faults are in the columns of the file."""
        self.sets = []
        before, last = 0, 0
        for file, text, end in super()._walk():
            before, last = before if file == last else 0, file

            def zero(found: re.Match[bytes], path: str = self.paths[file], lines: int = before) -> bytes:
                try:
                    self.sets.append([float(label) for label in found[2].split(b",") if found[2]])
                except ValueError:
                    line = lines + found.string.count(b"\n", 0, found.start()) + 1
                    shown = found[2][:40].decode("utf-8", "replace")
                    raise DataError(
                        f"{path}, line {line}: the line begins with {shown!r}. Labels are whole numbers from 0 with "
                        "commas between them, as in 1,4 3:0.5.",
                        path=path,
                        row=line,
                    ) from None
                return found[1] + (b"0".ljust(len(found[2])) if found[2] else b"0 ")

            read = bytearray(_LABELS.sub(zero, bytes(text[:end])))
            yield file, read, len(read)
            before += read.count(b"\n")
