"""What a tagger answers in the shell: sentences of CoNLL files or text, a batch at a time, as CoNLL with scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..data.conll import Located, conll_lines
from ..data.encoded_text import read_lines
from ..data.errors import DataError
from ..data.opening import kind_of
from ..metrics import SegmentCounts, SegmentScores
from ..report import numbers
from .files import answers_to, named, where
from .token_files import Tokens, is_table, located, refuse_rows, split_lines

if TYPE_CHECKING:
    from .tagging import Tagging

_AT_A_TIME = 1000  # sentences that are read, tagged and written together


def predict(tagging: Tagging) -> None:
    """Write the answers, and say how many are right where there are labels to say so."""
    tally = _Tally(tagging.model.segments)
    read, labelled = _sentences(tagging)
    with answers_to(tagging.args) as file:
        while batch := list(islice(read, _AT_A_TIME)):
            data = Tokens([f.tokens for f in batch], [f.labels for f in batch], located=batch)
            tagging.check_spelling(data if labelled else None, tagging.model.segments)
            with located(data):
                answers = tagging.model.predict(data.X)
                if file is not None:
                    file.writelines(_written(tagging, data, answers, labelled, tally.sentences))
            tally.add(data, answers, labelled)
    _say_how_well(tagging, tally, labelled)


def _say_how_well(tagging: Tagging, tally: _Tally, labelled: bool) -> None:
    args = tagging.args
    value = tally.score() if labelled else None
    table = tally.segment_scores() if labelled else None
    rows = {} if table is None else {"segments": {name: score._asdict() for name, score in table.rows()}}
    tagging.talk.result(
        command="predict", task=tagging.task.name, model=args.model, score=tagging.measure, value=value,
        output=args.output, sequences=tally.sentences, tokens=tally.tokens, **rows,
    )  # fmt: skip
    verdict = "" if value is None else f" {tagging.measure[0].upper()}{tagging.measure[1:]}: {numbers.share(value)}."
    unit = f"sentence{'s' * (tally.sentences != 1)}"
    tagging.talk.say(f"{numbers.count(tally.sentences)} {unit} answered.{verdict}")
    if table is not None:
        tagging.talk.say(f"\n{table}")


def _sentences(tagging: Tagging) -> tuple[Iterator[Located], bool]:
    """What is to be tagged, and whether it has labels."""
    args, paths = tagging.args, tagging.args.data
    refuse_rows(paths)
    if _is_text(tagging, paths):
        n = getattr(tagging.model, "origin_", {}).get("n_token_columns", 1)
        if n > 1:
            raise DataError(
                f"{named(paths)} is read as one sentence per line, whose tokens are words; {args.model} was "
                f"trained on tokens of {n} columns. Give a CoNLL file with these columns, or train "
                "on words and labels alone: --columns 0,-1."
            )
        return split_lines(paths, args.encoding or "utf-8"), False
    files = tagging.conll(paths, may_lack_labels=True)
    return files.located(), files.labels


def _is_text(tagging: Tagging, paths: list[str]) -> bool:
    """Whether files have a sentence per line, as said or as they look."""
    if tagging.args.format not in (None, "auto"):
        return bool(tagging.args.format == "text")
    if is_table(paths) or kind_of(where(paths)) == "conll":
        return False
    lines = [line for _, line in islice(read_lines(paths[0], tagging.args.encoding or "utf-8"), 1000)]
    widths = {len(line.split()) for line in lines} - {0}
    text = not any("\t" in line for line in lines) and (len(widths) > 1 or all(map(str.strip, lines)))
    what = "one sentence per line" if text else "one token per line"
    tagging.talk.say(f"Reading {named(paths)} as {what} (--format says otherwise).")
    return text


def _written(tagging: Tagging, data: Tokens, answers: Any, labelled: bool, before: int) -> Iterator[str]:
    """The answers as lines of a CoNLL file: the columns that were read, the answer, its probability if wanted."""
    rows = [[(token,) if isinstance(token, str) else tuple(token) for token in x] for x in data.X]
    if labelled:
        rows = [_beside(x, y) for x, y in zip(rows, data.y or (), strict=True)]
    shares = tagging.model.predict_marginals(data.X) if tagging.args.marginals else None
    if tagging.args.k_best is None:
        yield from _lines(rows, answers, shares)
        return
    for i, (x, row) in enumerate(zip(data.X, rows, strict=True)):
        found = tagging.model.k_best(x, tagging.args.k_best)
        said = [f"score {score:.6g}" for _, score in found]
        if shares is not None:
            likely = tagging.model.sequence_proba([x] * len(found), [labels for labels, _ in found])
            said = [f"{score}, probability {p:.4f}" for score, p in zip(said, likely, strict=True)]
        for rank, (labels, _) in enumerate(found):
            yield f"# sentence {before + i + 1}, labelling {rank + 1} of {len(found)}, {said[rank]}\n"
            yield from _lines([row], [labels], None if shares is None else [shares[i]])


class _Tally:
    """How many answers are right, counted a batch at a time."""

    def __init__(self, segments: str | None) -> None:
        self._segments = None if segments is None else SegmentCounts()
        self.sentences = self.tokens = self._right = 0

    def add(self, data: Tokens, answers: Any, labelled: bool) -> None:
        self.sentences += len(data.X)
        self.tokens += sum(map(len, data.X))
        if labelled and self._segments is not None:
            self._segments.add(data.y, answers)  # type: ignore[arg-type]
        elif labelled:
            pairs = zip(data.y, answers, strict=True)  # type: ignore[arg-type]
            self._right += sum(a == b for y, z in pairs for a, b in zip(y, z, strict=True))

    def segment_scores(self) -> SegmentScores | None:
        return None if self._segments is None else self._segments.scores()

    def score(self) -> float:
        table = self.segment_scores()
        return self._right / self.tokens if table is None else table.micro.f1


def _lines(rows: list[Any], answers: Any, shares: Any) -> Iterator[str]:
    if shares is None:
        yield from conll_lines(rows, answers)
        return
    for x, labels, share in zip(rows, answers, shares, strict=True):
        told = [f"{of_label[label]:.4f}" for of_label, label in zip(share, labels, strict=True)]
        yield from conll_lines([_beside(x, labels)], [told])


def _beside(x: list[Any], labels: Sequence[Any]) -> list[Any]:
    """Tokens with one more column."""
    return [(*token, label) for token, label in zip(x, labels, strict=True)]
