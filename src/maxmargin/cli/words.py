"""Messages of the library name its parameters; on a command line they are options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

_WORDS = {
    "on_error='skip'": "--on-error skip",
    'on_error="skip"': "--on-error skip",
    "overwrite=True": "--overwrite",
    "maxmargin.data.convert(..., batch_bytes=...)": "maxmargin convert --batch-size",
    "batch_bytes must": "--batch-size must",
    "zero_based=True": "--zero-based yes",
    "n_features=": "--features ",
    "n_features must": "--features must",
    "n_jobs must": "--jobs must",
    "a file that save has written": "a file that maxmargin train has written",
    "a smaller n_components or a larger n_sampled": "a smaller --components",
    "a smaller root_area, a larger finest, or more components": "a smaller --root-area, a larger --finest, or more "
    "--components",
    "Give label one of these.": "Give --label one of these.",
    "Name the folder of the images with images or root.": "Name the folder of the images, and --boxes for the boxes.",
}


def translator(options: Iterable[Any]) -> Callable[[str], str]:
    """A function that translates messages, given the options of a command."""
    flags = {option.name: option.flag for option in options}
    names = "|".join(sorted(flags, key=len, reverse=True)) or "(?!)"
    subject = re.compile(rf"(^|[.:] )({names})(?= must\b)")  # at the beginning of a sentence: some names are words
    setting = re.compile(rf"(?<![\w.`'-])({names})=")

    def translated(text: str) -> str:
        for ours, theirs in _WORDS.items():
            text = text.replace(ours, theirs)
        text = subject.sub(lambda found: found[1] + flags[found[2]], text)
        return setting.sub(lambda found: f"{flags[found[1]]} ", text)

    return translated
