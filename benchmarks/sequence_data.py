"""Sequences for the structured benchmarks, read from the folder named by MAXMARGIN_DATA."""

import gzip
import json
from typing import Any

import numpy as np
from datasets import folder
from token_attributes import attributes

TEST_FOLD = 0
TASKS = {"CoNLL-2000": ("conll2000", "chunk"), "EWT": ("ud_ewt", "upos")}

Words = tuple[list[np.ndarray], list[np.ndarray]]
Sentences = tuple[list[list[list[str]]], list[list[str]]]


def letters(part: str, limit: int | None = None) -> Words:
    """Handwritten words: (letters, 128) pixels each, labels 0..25. `part` is "fold 1" or "folds 1-9"."""
    with np.load(folder() / "ocr_letters.npz") as z:
        pixels, at, fold = np.unpackbits(z["pixels_packed"], axis=1), z["offsets"], z["fold"]
        labels = z["labels"] - z["labels"].min()
    chosen = fold == 1 if part == "fold 1" else fold != TEST_FOLD
    spans = [(at[i], at[i + 1]) for i in np.flatnonzero(chosen)[:limit]]
    return [pixels[a:b] for a, b in spans], [labels[a:b] for a, b in spans]


def raw_sentences(task: str, split: str, limit: int | None = None) -> tuple[list[list[Any]], list[list[str]]]:
    """Words, or pairs of a word and its part of speech where these are given, and the tags."""
    name, tag = TASKS[task]
    with gzip.open(folder() / f"{name}.{split}.jsonl.gz", "rt", encoding="utf8") as file:
        read: list[dict[str, Any]] = [json.loads(line) for line in file][:limit]
    X = [list(zip(s["w"], s["pos"], strict=True)) if "pos" in s else s["w"] for s in read]
    return X, [s[tag] for s in read]


def sentences(task: str, split: str, limit: int | None = None) -> Sentences:
    """Attributes of the tokens and their tags: chunks of CoNLL-2000, parts of speech of EWT."""
    name, tag = TASKS[task]
    with gzip.open(folder() / f"{name}.{split}.jsonl.gz", "rt", encoding="utf8") as file:
        read: list[dict[str, Any]] = [json.loads(line) for line in file][:limit]
    return [attributes(s["w"], s.get("pos")) for s in read], [s[tag] for s in read]
