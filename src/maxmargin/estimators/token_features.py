"""TokenFeatures: templates that say what a tagger sees of the words of a sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ..data.named_tokens import NamedTokens, Template
from ..data.templates import Column, Margins, columns_of, phrases, word_shapes
from ..persistence import storable_part
from ..validation import shown, switch, whole
from .settings import with_parameters


@storable_part()
@with_parameters
class TokenFeatures(TransformerMixin, BaseEstimator):
    """Features of the tokens of sentences, from templates: for named entities, parts of speech, chunks.

    A token is a word, a tuple of a word and other columns (a part of speech, a lemma), or a dict of them. It gets the
    words around it, its prefixes and suffixes, its shape, the other columns around it and their neighbouring pairs, and
    membership in gazetteers, as named features of value 1 such as ``"word[-1]=the"`` or ``"suffix3=ing"``.

    Nothing is learned: names are numbered by ``SequenceSVM``, which takes the templates as ``features=``, or
    stands behind them in a pipeline.

    Parameters
    ----------
    window : int
        How many tokens before and after are looked at.
    affixes : int
        The longest prefixes and suffixes, in characters; 0 for none.
    shape : bool
        Whether the pattern of capitals (X), small letters (x), digits (d) and other characters counts.
    lowercase : bool
        Whether words and affixes are compared in lower case; shapes tell capitals all the same.
    pairs : bool
        Whether pairs of the word and its neighbours, and the same pairs of the other columns, are features, too.
    triples : bool
        Whether the other columns have features of three neighbours, too, with the token among them.
    columns : sequence of str, optional
        Names of the columns of a token, the word first. Of tuples "word", "column1", … if not given; of dicts all keys.
    gazetteers : dict of name to phrases, optional
        Lists of words or phrases, such as the names of cities; the longest phrase counts.

    Examples
    --------
    >>> templates = TokenFeatures(window=1, affixes=2, gazetteers={"city": ["New York"]})
    >>> templates.transform([["New", "York", "fell"]])[0][2]
    ['word[-1]=york', 'word[0]=fell', 'word[1]=</s>', 'word[-1]|word[0]=york|fell', 'word[0]|word[1]=fell|</s>', \
'prefix1=f', 'suffix1=l', 'prefix2=fe', 'suffix2=ll', 'shape=x']
    """

    window: int = 2
    affixes: int = 3
    shape: bool = True
    lowercase: bool = True
    pairs: bool = True
    triples: bool = True
    columns: Sequence[str] | None = None
    gazetteers: Mapping[str, Sequence[str]] | None = None

    def fit(self, X: Any = None, y: Any = None) -> TokenFeatures:
        """Check the settings; there is nothing to learn."""
        whole("window", self.window, 0, 100)
        whole("affixes", self.affixes, 0, 100)
        for name in ("shape", "lowercase", "pairs", "triples"):
            switch(name, getattr(self, name))
        columns, gazetteers = self.columns, {} if self.gazetteers is None else self.gazetteers
        if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence) or not columns):
            raise ValueError(f"columns must be None or a list of the names of columns, got {shown(columns)}.")
        if not isinstance(gazetteers, Mapping):
            raise ValueError(f"gazetteers must be a dict of names and lists of phrases, got {shown(gazetteers)}.")
        for name, listed in gazetteers.items():
            is_list = isinstance(listed, Collection) and not isinstance(listed, str)
            if not is_list or not all(isinstance(phrase, str) for phrase in listed):
                raise ValueError(f"gazetteers[{name!r}] must be a list of words or phrases, got {shown(listed)}.")
        return self

    def transform(self, X: Sequence[Any]) -> NamedTokens:
        """The features of all tokens of a list of sentences."""
        self.fit()
        columns, offsets = columns_of(X, self.columns)
        margins = Margins(offsets, self.window)
        templates, values = zip(*self._features(columns, offsets, margins), strict=True)
        return NamedTokens(templates, list(values), margins.at, offsets)

    def _features(
        self, columns: dict[str, Column], offsets: np.ndarray, margins: Margins
    ) -> Iterator[tuple[Template, Column]]:
        (first, words), *others = ((name, margins.around(column)) for name, column in columns.items())
        plain = Column(words.number, list(map(str.lower, words.values))) if self.lowercase else words
        for name, column in [(first, plain), *others]:
            triples = self.triples and name != first
            yield Template(name, self.window, (1,) + (2,) * self.pairs + (3,) * triples), column
        for k in range(1, self.affixes + 1):
            yield Template(f"prefix{k}", affix=k), plain
            yield Template(f"suffix{k}", affix=-k), plain
        if self.shape:
            yield Template("shape"), Column(words.number, word_shapes(words.values))
        for name, listed in (self.gazetteers or {}).items():
            yield Template(f"in:{name}"), margins.around(phrases(columns[first], listed, self.lowercase, offsets))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags
