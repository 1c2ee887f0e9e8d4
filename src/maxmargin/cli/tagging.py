"""Taggers in the shell: CoNLL files and plain text beside groups of rows, a development set, answers as CoNLL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ..data.conll import UNIVERSAL, Conll, Located, conll_lines, open_conll
from ..data.encoded_text import read_lines
from ..data.errors import DataError, named_sequence
from ..data.opening import kind_of
from ..data.segments import SCHEMES, Alphabet, fits
from ..estimators.allowed import Allowed
from ..estimators.sequence_data import label_set, numbered, sorted_classes
from ..estimators.training import steps_of_path
from ..features import TokenFeatures
from ..files import replacing
from ..metrics import SegmentCounts, SegmentScores
from ..problem import Certificate
from ..protocols import OracleError
from ..report import numbers
from ..report.content import Data
from ..validation import whole
from .files import answers_to, named, stdin_as_file, where
from .grouped import Collected, Sequences
from .tagging_options import TEMPLATES
from .tasks import READING

_GRID = (0.05, 0.1, 0.2, 0.4, 0.8)
_PATIENCE = 2  # values of C in a row that may do worse than the best one so far
_AT_A_TIME = 1000  # sentences that are read, tagged and written together
_ROWS = {".svm", ".svmlight", ".libsvm"}
_ROW = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)+\s*(#.*)?")


@dataclass(frozen=True)
class Tokens(Collected):
    """Sentences with the lines of files that their tokens are in."""

    located: Sequence[Located] = ()

    def place(self, i: int, t: int = 0) -> str:
        found = self.located[i]
        return f"{found.path}, line {found.lines[min(t, len(found.lines) - 1)]}"


@dataclass(frozen=True)
class Streamed:
    """Sentences that are read anew in every pass."""

    source: Any

    def __len__(self) -> int:
        return len(self.source)


class Tagging(Sequences):
    """CoNLL files, for models of named features; groups of rows, as in files of SVM-hmm, for models of numbers."""

    dev: Any = None
    _tuned: list[dict[str, float]] | None = None

    @property
    def measure(self) -> str:  # type: ignore[override]
        return "accuracy of labels" if self.model.segments is None else "F1 of segments"

    # Data

    def prepare(self, settings: dict[str, Any]) -> None:
        args = self.args
        self._words = not _has_rows(args.data)
        self._streams = self._words and settings.get("memory") is not None
        self._segments = settings.get("segments")
        given = [name for name in (*(p.name for p in TEMPLATES), "columns", "encoding", "comments") if vars(args)[name]]
        if given and not self._words:
            name = given[0].replace("_", "-")
            raise ValueError(f"--{name} is for CoNLL files, and {named(args.data)} has rows of numbers. Leave it out.")
        if self._words:
            self._refuse_options_of_rows()
            settings["features"] = self._templates()
        for option in ("tune", "calibrate"):
            if vars(args)[option] and args.dev is None:
                raise ValueError(f"--{option} needs development data that is not trained on. Name it with --dev.")
        if args.calibrate and settings.get("order") == 2:
            raise ValueError("--calibrate is for --order 1: probabilities are those of chains of first order.")
        if args.grid is not None and args.tune is None:
            raise ValueError("--grid has the values that --tune tries. Say --tune C, too.")
        if args.tune is not None and args.checkpoint is not None:
            raise ValueError("--tune trains several times, and --checkpoint saves one run. Leave one of them out.")
        grid = args.grid or _GRID
        if list(grid) != sorted(set(grid)) or grid[0] <= 0:
            raise ValueError(f"--grid must be ascending numbers above 0, got {', '.join(map(str, grid))}.")

    def use(self, model: Any) -> None:
        super().use(model)
        self._words, self._streams = model._names is not None, False
        if self._words:
            self._refuse_options_of_rows()

    def _refuse_options_of_rows(self) -> None:
        given = [p.name for p in READING if vars(self.args).get(p.name) is not None]
        if given:
            name = given[0].replace("_", "-")
            raise ValueError(f"--{name} is for rows of numbers, and a model of words reads sentences. Leave it out.")

    def open(self, paths: list[str]) -> Any:
        if not self._words:
            return super().open(paths)
        if self._streams and paths is self.args.data:
            columns, comments = self._columns(), self.args.comments or None
            return Streamed(open_conll(paths, columns=columns, encoding=self.args.encoding, comments=comments))
        found = list(self._conll(paths).located())
        data = Tokens([f.tokens for f in found], [f.labels for f in found], located=found)
        if self.args.command == "report":
            self._check_spelling(data, self.model.segments)
        return data

    def training(self) -> tuple[Any, Any]:
        data, test = super().training()
        if self._segments is None and isinstance(data, Tokens):
            self._hint_at_segments(cast(list[Any], data.y))
        self.dev = None if self.args.dev is None else self.open([self.args.dev])
        for held_out in (self.dev, test):
            self._check_spelling(held_out, self._segments)
        if self.args.calibrate and isinstance(data, Tokens):
            with _located(self.dev):  # rather than after hours of training
                Allowed(None, self._segments).check_labels(self.dev.y)
                numbered(self.dev.y, sorted_classes(label_set(cast(list[Any], data.y))))
        return data, test

    def _hint_at_segments(self, labels: list[Any]) -> None:
        scheme = next((name for name in ("iob2", *SCHEMES) if fits(labels, name)), None)
        if scheme is not None:
            self.talk.say(
                f"Labels spell segments: --segments {scheme} keeps answers to {scheme}, and reports their F1."
            )

    def _check_spelling(self, data: Any, segments: str | None) -> None:
        """Refuse labels that say nothing of segments, where those of answers are compared with them."""
        if segments is not None and isinstance(data, Tokens):
            with _located(data):
                Alphabet().numbered(cast(list[Any], data.y))

    def arguments(self, data: Any) -> tuple[Any, ...]:
        return (data.source,) if isinstance(data, Streamed) else super().arguments(data)

    def page(self, data: Any, name: str) -> Data:
        return Data(data.source, name=name) if isinstance(data, Streamed) else super().page(data, name)

    def shown(self, data: Any, test: Any) -> tuple[Any, str]:
        if test is None and self.dev is not None:
            return self.dev, f"development {self.what} ({named([self.args.dev])})"
        return super().shown(data, test)

    def certified(self, data: Any) -> Certificate:
        with _located(data):
            return super().certified(data)

    def score(self, data: Any) -> dict[str, Any]:
        with _located(data):
            return super().score(data)

    def _templates(self) -> TokenFeatures:
        args = self.args
        given = {name: vars(args)[name] for name in ("window", "affixes") if vars(args)[name] is not None}
        given |= {name: False for name in ("shape", "lowercase", "pairs", "triples") if vars(args)[f"no_{name}"]}
        if args.gazetteers:
            given["gazetteers"] = {
                Path(path).name.split(".")[0]: [line.strip() for _, line in read_lines(path, args.encoding or "utf-8")]
                for path in args.gazetteers.split(",")
            }
        others = (self._columns() or [])[1:-1]
        if others and all(isinstance(name, str) for name in others):
            given["columns"] = ["word", *others]
        return TokenFeatures(**given).fit()

    def _columns(self) -> list[int | str] | None:
        """Those that were named, or that the model was trained with."""
        if self.args.columns is not None:
            return [_column(name) for name in self.args.columns.split(",")]
        return getattr(self.model, "origin_", {}).get("columns")

    def _conll(self, paths: list[str], *, may_lack_labels: bool = False) -> Conll:
        """CoNLL files as the model reads them; without labels, if they may be missing and are."""
        _refuse_rows(paths)
        encoding, columns = self.args.encoding or "utf-8", self._columns()
        reading: dict[str, Any] = {"encoding": encoding, "comments": self.args.comments or None}
        if self.args.command == "train" and paths is not self.args.data:
            reading["like"] = self._conll(self.args.data)
        if not may_lack_labels or columns is None:
            return Conll(where(paths), columns, **reading)
        n_tokens = getattr(self.model, "origin_", {}).get("n_token_columns", len(columns) - 1)
        bare = Conll(where(paths), columns[:n_tokens], labels=False, **reading)
        if len(columns) == n_tokens:
            return bare
        numbered = [k for k in columns if isinstance(k, int)]
        if len(numbered) == len(columns):
            width = bare.width()
            *tokens, label = (k + width if k < 0 else k for k in numbered)
            if not 0 <= label < width or label in tokens:
                return bare
        full = Conll(where(paths), columns, **reading)
        first = next(full.located())
        return bare if set(first.labels) == {"_"} and "_" not in self.model.classes_ else full

    # Training

    def fit(self, model: Any, data: Any, options: dict[str, Any], interrupted: list[bool]) -> Any:
        if self._words:
            columns = self._columns() or self._conll(self.args.data).columns()
            self._origin = {"columns": list(columns), "n_token_columns": len(columns) - 1}
        self._so_far = model
        try:
            with _located(data):
                if self.args.tune is None:
                    model = model.fit(*self.arguments(data), **options)
                else:
                    model = self._best_of_path(model, data, options, interrupted)
        except (OracleError, MemoryError) as error:  # a file that was changed meanwhile, for one
            if "coef_" not in vars(self._so_far):
                raise
            self._save(self._so_far)
            raise DataError(f"{error} What was learned until then is in {self.args.output}.") from error
        if self._words:
            model.origin_ = self._origin
        if self.args.calibrate and not interrupted:
            self._calibrate(model)
        return model

    def _calibrate(self, model: Any) -> None:
        """Fit the temperature; where that fails or is interrupted, the trained model is written all the same."""
        try:
            with _located(self.dev):
                model.calibrate(self.dev.X, self.dev.y)
        except KeyboardInterrupt:
            return  # whoever asks is told that it was
        except ValueError as error:
            self._save(model)
            raise DataError(f"{error} The trained model is in {self.args.output}, not calibrated.") from error

    def _save(self, model: Any) -> None:
        """Write a model although something went wrong."""
        model.verbose = 0
        if self._words:
            model.origin_ = self._origin
        with replacing(self.args.output) as path:
            model.save(path)

    def _best_of_path(self, model: Any, data: Any, options: dict[str, Any], interrupted: list[bool]) -> Any:
        """The fit that does best on the development data; templates are computed once for all of them."""
        X, *rest = self.arguments(data)
        grid = self.args.grid or _GRID
        if self._words and not self._streams:
            X = model.features.transform(X)
        self._tuned, step, best, best_score = [], None, None, -1.0
        try:
            for step in steps_of_path(model, X, rest[0] if rest else None, "C", grid, options):
                with _located(self.dev):
                    score = step.score(self.dev.X, self.dev.y)
                self._tuned.append({"C": step.C, "score": score})
                self.talk.say(f"C {step.C:g}: {self.measure} {100 * score:.2f} % on the development data")
                if score > best_score:
                    best = self._so_far = step
                    best_score = score
                worse = len(self._tuned) - 1 - [tried["score"] for tried in self._tuned].index(best_score)
                if interrupted or worse >= _PATIENCE:
                    break
        except KeyboardInterrupt:  # between two fits: one that is under way ends by itself
            if step is None:
                raise
        return best or step

    def facts(self, data: Any) -> dict[str, Any]:
        found = super().facts(data)
        if self._words:
            found["columns"] = self.model.origin_["columns"]
        if self.dev is not None:
            found |= {"dev": self.score(self.dev), "C": self.model.C, "tuned": self._tuned}
            found["temperature"] = getattr(self.model, "temperature_", None) if self.args.calibrate else None
        return found

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        rows = super().rows(facts)
        if facts.get("columns"):
            names = dict(enumerate(UNIVERSAL)) if self._conll(self.args.data).universal else {}
            *tokens, label = (str(names.get(column, column)) for column in facts["columns"])
            rows.insert(0, ("columns", f"{', '.join(tokens)}; labels: {label}"))
        if facts.get("tuned"):
            tried = ", ".join(f"{step['C']:g}" for step in facts["tuned"])
            rows.append(("C", f"{facts['C']:g}, the best of {tried} on the development data"))
        if facts.get("dev"):
            rows.append((f"dev {facts['dev']['score']}", self.in_words(facts["dev"])))
        if facts.get("temperature"):
            rows.append(("temperature", f"{facts['temperature']:.3g}: scores are calibrated to probabilities"))
        return rows

    # With a model at hand

    def predict(self) -> None:
        args = self.args
        if args.k_best is not None:
            whole("--k-best", args.k_best)
        if not self._words:
            if args.k_best is not None or args.marginals:
                raise ValueError(
                    "--k-best and --marginals are for models of CoNLL files; this one has rows of numbers."
                )
            super().predict()
            return
        if args.marginals and not hasattr(self.model, "temperature_"):
            raise ValueError(
                f"{args.model} is not calibrated: --marginals needs maxmargin train --dev FILE --calibrate."
            )
        with stdin_as_file(args.data) as args.data:
            self._say_how_well(*self._tag())

    def _tag(self) -> tuple[_Tally, bool]:
        """Write the answers; how many there were and how many are right, and whether there were labels to say so."""
        tally = _Tally(self.model.segments)
        read, labelled = self._sentences()
        with answers_to(self.args) as file:
            while batch := list(islice(read, _AT_A_TIME)):
                data = Tokens([f.tokens for f in batch], [f.labels for f in batch], located=batch)
                self._check_spelling(data if labelled else None, self.model.segments)
                with _located(data):
                    answers = self.model.predict(data.X)
                    if file is not None:
                        file.writelines(self._written(data, answers, labelled, tally.sentences))
                tally.add(data, answers, labelled)
        return tally, labelled

    def _say_how_well(self, tally: _Tally, labelled: bool) -> None:
        args = self.args
        value = tally.score() if labelled else None
        table = tally.segment_scores() if labelled else None
        rows = {} if table is None else {"segments": {name: score._asdict() for name, score in table.rows()}}
        self.talk.result(
            command="predict", task=self.task.name, model=args.model, score=self.measure, value=value,
            output=args.output, sequences=tally.sentences, tokens=tally.tokens, **rows,
        )  # fmt: skip
        verdict = "" if value is None else f" {self.measure[0].upper()}{self.measure[1:]}: {numbers.share(value)}."
        unit = f"sentence{'s' * (tally.sentences != 1)}"
        self.talk.say(f"{numbers.count(tally.sentences)} {unit} answered.{verdict}")
        if table is not None:
            self.talk.say(f"\n{table}")

    def _sentences(self) -> tuple[Iterator[Located], bool]:
        """What is to be tagged, and whether it has labels."""
        args, paths = self.args, self.args.data
        _refuse_rows(paths)
        if self._is_text(paths):
            n = getattr(self.model, "origin_", {}).get("n_token_columns", 1)
            if n > 1:
                raise DataError(
                    f"{named(paths)} is read as one sentence per line, whose tokens are words; {args.model} was "
                    f"trained on tokens of {n} columns. Give a CoNLL file with these columns, or train "
                    "on words and labels alone: --columns 0,-1."
                )
            return _split(paths, args.encoding or "utf-8"), False
        files = self._conll(paths, may_lack_labels=True)
        return files.located(), files.labels

    def _is_text(self, paths: list[str]) -> bool:
        """Whether files have a sentence per line, as said or as they look."""
        if self.args.format not in (None, "auto"):
            return bool(self.args.format == "text")
        if _is_table(paths) or kind_of(where(paths)) == "conll":
            return False
        lines = [line for _, line in islice(read_lines(paths[0], self.args.encoding or "utf-8"), 1000)]
        widths = {len(line.split()) for line in lines} - {0}
        text = not any("\t" in line for line in lines) and (len(widths) > 1 or all(map(str.strip, lines)))
        what = "one sentence per line" if text else "one token per line"
        self.talk.say(f"Reading {named(paths)} as {what} (--format says otherwise).")
        return text

    def _written(self, data: Tokens, answers: Any, labelled: bool, before: int) -> Iterator[str]:
        """The answers as lines of a CoNLL file: the columns that were read, the answer, its probability if wanted."""
        rows = [[(token,) if isinstance(token, str) else tuple(token) for token in x] for x in data.X]
        if labelled:
            rows = [_beside(x, y) for x, y in zip(rows, data.y or (), strict=True)]
        shares = self.model.predict_marginals(data.X) if self.args.marginals else None
        if self.args.k_best is None:
            yield from _lines(rows, answers, shares)
            return
        for i, (x, row) in enumerate(zip(data.X, rows, strict=True)):
            found = self.model.k_best(x, self.args.k_best)
            said = [f"score {score:.6g}" for _, score in found]
            if shares is not None:
                likely = self.model.sequence_proba([x] * len(found), [labels for labels, _ in found])
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


def has_token_lines(paths: list[str]) -> bool:
    """Whether a text file whose name says nothing has columns of tokens, and blank lines between sentences."""
    if "*" in paths[0] or not (_is_table(paths) or kind_of(where(paths)) == "svmlight"):
        return False
    lines = [line.strip() for _, line in islice(read_lines(paths[0], "latin-1"), 1000)]
    filled = [line for line in lines if line and line[0] != "#"]
    widths = {len(line.split()) for line in filled}
    return "" in lines and len(widths) == 1 and widths != {1} and _ROW.fullmatch(filled[0]) is None


def _is_table(paths: list[str]) -> bool:
    """Whether the first file has columns between tabs: of tokens, as no other table in text is read."""
    return ".tsv" in {suffix.lower() for suffix in Path(paths[0]).suffixes}


def _has_rows(paths: list[str]) -> bool:
    """Whether files hold rows of numbers, in groups, rather than tokens."""
    if _is_table(paths):
        return False
    kind = kind_of(where(paths))
    if kind != "svmlight":
        return kind != "conll"
    if _is_named_as_rows(paths[0]) or "*" in paths[0]:
        return True
    try:
        lines: Iterable[str] = (line for _, line in read_lines(paths[0]) if line.strip() and line[0] != "#")
        return _ROW.fullmatch(next(iter(lines), "")) is not None
    except DataError:
        return False  # it will be said by whoever reads all of it


def _is_named_as_rows(path: str) -> bool:
    return bool(_ROWS & {suffix.lower() for suffix in Path(path).suffixes})


def _refuse_rows(paths: list[str]) -> None:
    wrong = next((path for path in paths if _is_named_as_rows(path)), None)
    if wrong is not None:
        raise DataError(
            f"{wrong} has rows of numbers by its name, and a model of words reads CoNLL files and text. Name another "
            "file, or give this one the name of what it is.",
            path=wrong,
        )


def _split(paths: list[str], encoding: str) -> Iterator[Located]:
    """Sentences, one per line, split at blanks."""
    for path in paths:
        for number, line in read_lines(path, encoding):
            words = line.split()
            yield Located(words, [], path, [number] * max(1, len(words)))


def _column(name: str) -> int | str:
    try:
        return int(name)
    except ValueError:
        return name.strip()


@contextmanager
def _located(data: Any) -> Iterator[None]:
    """Errors about a sequence say in which line of which file it is."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        found = named_sequence(str(error))
        if found is None or not isinstance(data, Tokens) or found[0] >= len(data.located):
            raise
        i, t, _ = found
        raise DataError(f"{data.place(i, t)}: {error}", path=data.located[i].path) from error
