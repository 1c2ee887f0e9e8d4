"""Taggers in the shell: CoNLL files and plain text beside groups of rows, a development set, answers as CoNLL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..data.conll import UNIVERSAL, Conll, open_conll
from ..data.encoded_text import read_lines
from ..data.errors import DataError
from ..data.segments import SCHEMES, Alphabet, fits
from ..estimators.allowed import Allowed
from ..estimators.sequence_data import label_set, numbered, sorted_classes
from ..estimators.training import steps_of_path
from ..features import TokenFeatures
from ..files import replacing
from ..problem import Certificate
from ..protocols import OracleError
from ..report.content import Data
from ..validation import whole
from . import tagging_predict
from .files import named, stdin_as_file, where
from .grouped import Sequences
from .tagging_options import TEMPLATES
from .tasks import READING
from .token_files import Tokens, column_of, has_rows, located, refuse_rows

_GRID = (0.05, 0.1, 0.2, 0.4, 0.8)
_PATIENCE = 2  # values of C in a row that may do worse than the best one so far


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
        self._words = not has_rows(args.data)
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
        found = list(self.conll(paths).located())
        data = Tokens([f.tokens for f in found], [f.labels for f in found], located=found)
        if self.args.command == "report":
            self.check_spelling(data, self.model.segments)
        return data

    def training(self) -> tuple[Any, Any]:
        data, test = super().training()
        if self._segments is None and isinstance(data, Tokens):
            self._hint_at_segments(cast(list[Any], data.y))
        self.dev = None if self.args.dev is None else self.open([self.args.dev])
        for held_out in (self.dev, test):
            self.check_spelling(held_out, self._segments)
        if self.args.calibrate and isinstance(data, Tokens):
            with located(self.dev):  # rather than after hours of training
                Allowed(None, self._segments).check_labels(self.dev.y)
                numbered(self.dev.y, sorted_classes(label_set(cast(list[Any], data.y))))
        return data, test

    def _hint_at_segments(self, labels: list[Any]) -> None:
        scheme = next((name for name in ("iob2", *SCHEMES) if fits(labels, name)), None)
        if scheme is not None:
            self.talk.say(
                f"Labels spell segments: --segments {scheme} keeps answers to {scheme}, and reports their F1."
            )

    def check_spelling(self, data: Any, segments: str | None) -> None:
        """Refuse labels that say nothing of segments, where those of answers are compared with them."""
        if segments is not None and isinstance(data, Tokens):
            with located(data):
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
        with located(data):
            return super().certified(data)

    def score(self, data: Any) -> dict[str, Any]:
        with located(data):
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
            return [column_of(name) for name in self.args.columns.split(",")]
        return getattr(self.model, "origin_", {}).get("columns")

    def conll(self, paths: list[str], *, may_lack_labels: bool = False) -> Conll:
        """CoNLL files as the model reads them; without labels, if they may be missing and are."""
        refuse_rows(paths)
        encoding, columns = self.args.encoding or "utf-8", self._columns()
        reading: dict[str, Any] = {"encoding": encoding, "comments": self.args.comments or None}
        if self.args.command == "train" and paths is not self.args.data:
            reading["like"] = self.conll(self.args.data)
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
            columns = self._columns() or self.conll(self.args.data).columns()
            self._origin = {"columns": list(columns), "n_token_columns": len(columns) - 1}
        self._so_far = model
        try:
            with located(data):
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
            with located(self.dev):
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
                with located(self.dev):
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
            names = dict(enumerate(UNIVERSAL)) if self.conll(self.args.data).universal else {}
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
            tagging_predict.predict(self)
