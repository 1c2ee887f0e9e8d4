"""Segments of sequences, and the labels that spell them: IOB1, IOB2, IOBES and their like.

A label is O, or a prefix that says where in a segment a token stands, and the type of the segment: "B-PER".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ..validation import one_of, shown
from .transitions import first_fault

O, B, I, E, S = range(5)
"""What a token is to a segment: outside of all, at its beginning, inside, at its end, a segment of its own."""
NO_TYPE = "_"
"""The type of labels that name none, as seqeval calls it."""

_LABEL = re.compile(r"(\w)(?:-(.+))?", re.DOTALL)


@dataclass(frozen=True)
class Scheme:
    """How labels spell segments. Tables are asked [types are the same, label before, label].

    Parameters
    ----------
    roles : dict of str to int
        What each prefix says.
    begins, ends : bool array (2, 5, 5)
        Whether a segment may begin with a label, or end with the label before it; one that goes on with a label
        (``_GOES_ON``) does neither.
    """

    roles: dict[str, int]
    begins: np.ndarray
    ends: np.ndarray

    @property
    def allowed(self) -> np.ndarray:
        """Which labels may follow which; a sequence stands between labels that are outside."""
        before, after = self.ends.copy(), self.begins.copy()
        before[:, O] = after[:, :, O] = True
        return _GOES_ON | (before & after)


def _table(*, before: Sequence[int] = range(5), after: Sequence[int] = range(5), same: bool | None = None) -> Any:
    """True for these labels before and these after them, of the same type, of another, or whichever."""
    table = np.zeros((2, 5, 5), bool)
    for alike in (False, True) if same is None else (same,):
        table[int(alike)][np.ix_(before, after)] = True
    return table


_GOES_ON = _table(before=[B, I], after=[I, E], same=True)
_ANY = Scheme(
    {"O": O, "B": B, "I": I, "M": I, "E": E, "L": E, "S": S, "U": S, "W": S},
    begins=_table(after=[B, I, E, S]) & ~_GOES_ON,
    ends=_table(before=[B, I, E, S]),
)  # as the script of CoNLL-2000 counts: whatever is not outside belongs to a segment
_BEGIN_AND_END = _table(after=[B, S]), _table(before=[E, S])
SCHEMES = {
    # B only where a segment follows another one of its type
    "iob1": Scheme(
        {"O": O, "B": B, "I": I},
        begins=(_table(after=[I]) & ~_table(before=[I], after=[I], same=True))
        | _table(before=[B, I], after=[B], same=True),
        ends=_table(before=[B, I]) & ~_table(before=[B], after=[B], same=False),
    ),
    "iob2": Scheme({"O": O, "B": B, "I": I}, begins=_table(after=[B]), ends=_table(before=[B, I])),
    "iobes": Scheme({"O": O, "B": B, "I": I, "E": E, "S": S}, *_BEGIN_AND_END),
    "bilou": Scheme({"O": O, "B": B, "I": I, "L": E, "U": S}, *_BEGIN_AND_END),
    "bmewo": Scheme({"O": O, "B": B, "M": I, "E": E, "W": S}, *_BEGIN_AND_END),
}


_ALSO = {"bio": "iob2", "bioes": "iobes", "bieos": "iobes"}  # what schemes are called elsewhere


def scheme_of(name: str | None, argument: str = "scheme") -> Scheme:
    return _ANY if name is None else SCHEMES[_known(name, argument, " or None")]


def _known(name: object, argument: str, besides: str = "") -> str:
    if isinstance(name, str) and name.lower() in _ALSO:
        raise ValueError(f"{argument}={name!r} is called {_ALSO[name.lower()]!r} here: give that.")
    return one_of(argument, name, SCHEMES, besides)


class Alphabet:
    """Labels as numbers, with what each says of a segment; grows as labels are met.

    Parameters
    ----------
    scheme : str or None
        One of ``SCHEMES``; None takes the prefixes of all of them.
    argument : str
        How the caller calls ``scheme``.
    """

    def __init__(self, scheme: str | None = None, argument: str = "scheme") -> None:
        self.name, self.argument = scheme, argument
        self.scheme = scheme_of(scheme, argument)
        self.labels: dict[Any, int] = {}
        self.types: dict[str, int] = {}
        self._roles: list[int] = []
        self._types: list[int] = []

    @property
    def roles(self) -> np.ndarray:
        return np.array(self._roles, np.int64)

    @property
    def type_of(self) -> np.ndarray:
        """The number of the type of each label, −1 for O."""
        return np.array(self._types, np.int64)

    def numbered(self, Y: Sequence[Any], name: str = "Y") -> list[list[int]]:
        """The labels of all sequences as numbers."""
        Y = [_plain(y, i, name) for i, y in enumerate(Y)]
        try:
            met = set().union(*Y)
            unfit = any(not self._learn(label) for label in sorted(met - self.labels.keys(), key=str))
        except TypeError:  # which cannot be hashed
            unfit = True
        if unfit:
            i, t = next((i, t) for i, y in enumerate(Y) for t, label in enumerate(y) if not self.knows(label))
            raise ValueError(f"{name}[{i}] has the label {shown(Y[i][t])} at token {t}, {self.complaint}")
        number = self.labels.__getitem__
        return [list(map(number, y)) for y in Y]

    def knows(self, label: object) -> bool:
        """Whether a label is one of the scheme; it has a number then."""
        return isinstance(label, str) and (label in self.labels or self._learn(label))

    def _learn(self, label: object) -> bool:
        found = _LABEL.fullmatch(label) if isinstance(label, str) else None
        if found is None or found[1] not in self.scheme.roles or (found[1] == "O" and found[2]):
            return False
        role = self.scheme.roles[found[1]]
        self.labels[label] = len(self.labels)
        self._roles.append(role)
        self._types.append(-1 if role == O else self.types.setdefault(found[2] or NO_TYPE, len(self.types)))
        return True

    @property
    def same_type(self) -> np.ndarray:
        """Whether two labels are of one type, as the tables of schemes are asked."""
        return (self.type_of[:, None] == self.type_of).astype(np.int64)

    @property
    def forbidden(self) -> dict[str, np.ndarray]:
        """What the scheme rules out: pairs of labels from × to, and labels at the start and the end."""
        role, allowed, outside = self.roles, self.scheme.allowed, (self.type_of == -1).astype(np.int64)
        return {
            "forbidden": ~allowed[self.same_type, role[:, None], role],
            "forbidden_start": ~allowed[outside, O, role],
            "forbidden_end": ~allowed[outside, role, O],
        }

    @property
    def complaint(self) -> str:
        """What to say of a label that is not one of the scheme."""
        prefixes = [prefix for prefix in self.scheme.roles if prefix != "O"]
        if self.name is None:
            return (
                "which says nothing of segments. Labels of segments are O, or prefix and type such as 'B-PER'; the "
                f"prefixes are {', '.join(prefixes)}."
            )
        return (
            f"which does not belong to {self.argument}={self.name!r}: its labels are O, "
            f"{', '.join(f'{prefix}-type' for prefix in prefixes)}. There are {', '.join(SCHEMES)}; "
            f"maxmargin.data.convert_segments(Y, {self.name!r}) converts between them."
        )


def _plain(y: Any, i: int, name: str) -> Any:
    """The labels of one sequence as a list."""
    y = y.tolist() if hasattr(y, "tolist") else y
    if not isinstance(y, list | tuple):
        raise ValueError(
            f"{name}[{i}] must be the list of the labels of one sequence, got {shown(y)}. Put a sequence that is alone "
            "into a list."
        )
    return y


class Marks:
    """The labels of all sequences one after another, an O before the first and behind each."""

    def __init__(self, numbers: Sequence[Sequence[int]], alphabet: Alphabet) -> None:
        self.length = np.fromiter(map(len, numbers), np.int64, len(numbers))
        self.first = 1 + np.concatenate([[0], np.cumsum(self.length + 1)])
        """Where the labels of each sequence begin."""
        inner = np.ones(self.first[-1], bool)
        inner[self.first - 1] = False
        self.label = np.full(inner.size, -1)
        self.label[inner] = np.fromiter(chain.from_iterable(numbers), np.int64, int(self.length.sum()))
        self.role, self.type = np.append(alphabet.roles, O)[self.label], np.append(alphabet.type_of, -1)[self.label]
        self.steps = (self.type[1:] == self.type[:-1]).astype(np.int64), self.role[:-1], self.role[1:]
        self._scheme = alphabet.scheme

    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Where segments begin, and behind which label each ends."""
        goes_on, begins = _GOES_ON[self.steps], self._scheme.begins[self.steps]
        begins[1:] &= ~(goes_on[1:] & begins[:-1])  # in IOB1 an I begins a segment behind a B that began none
        start, stops = 1 + np.flatnonzero(begins), 1 + np.flatnonzero(~goes_on)
        end = stops[np.searchsorted(stops, start, side="right")]
        whole = self._scheme.ends[tuple(part[end - 1] for part in self.steps)]
        return start[whole], end[whole]


def found_segments(Y: Sequence[Any], scheme: str | None = None, name: str = "Y") -> list[list[tuple[int, int, str]]]:
    """The segments of each sequence: where it begins, behind which token it ends, its type."""
    alphabet = Alphabet(scheme)
    marks = Marks(alphabet.numbered(Y, name), alphabet)
    start, end = marks.segments()
    which, names = np.searchsorted(marks.first, start, side="right") - 1, list(alphabet.types)
    first = start - marks.first[which]
    last, types = first + end - start, [names[k] for k in marks.type[start].tolist()]
    found = list(zip(first.tolist(), last.tolist(), types, strict=True))
    cuts = np.searchsorted(which, np.arange(len(Y) + 1)).tolist()
    return [found[a:b] for a, b in pairwise(cuts)]


def check_scheme(Y: Sequence[Any], scheme: str, name: str = "Y") -> None:
    """Refuse labels that are not spelled as the scheme ``segments`` says."""
    fault = _fault(Y, Alphabet(scheme, "segments"), name)
    if fault is None:
        return
    i, t, label, follower = fault
    y = _plain(Y[i], i, name)
    if label is None:
        what = f"begins with {y[0]!r} at token 0"
    elif follower is None:
        what = f"ends with {y[t]!r} at token {t}"
    else:
        what = f"has {y[t + 1]!r} after {y[t]!r} at token {t + 1}"
    fitting = [other for other in SCHEMES if other != scheme and fits(Y, other)]
    instead = f"They are labels of {fitting[0]!r}: give that as segments, or c" if fitting else "C"
    raise ValueError(
        f"{name}[{i}] {what}, which segments={scheme!r} does not allow. {instead}onvert them: "
        f"maxmargin.data.convert_segments(Y, {scheme!r})."
    )


def fits(Y: Sequence[Any], scheme: str) -> bool:
    """Whether all labels are spelled as the scheme says."""
    try:
        return _fault(Y, Alphabet(scheme)) is None
    except ValueError:
        return False


def _fault(Y: Sequence[Any], alphabet: Alphabet, name: str = "Y") -> Any:
    """The first step between labels that the scheme does not allow."""
    numbers = alphabet.numbered(Y, name)
    first = np.cumsum([0, *map(len, numbers)])
    flat = np.fromiter(chain.from_iterable(numbers), np.int64, first[-1])
    return first_fault(first, flat, len(alphabet.labels), *alphabet.forbidden.values())


def forbidden(labels: Sequence[Any], scheme: str) -> dict[str, np.ndarray]:
    """What the scheme rules out among these labels: pairs from × to, and labels at the start and the end."""
    alphabet = Alphabet(scheme, "segments")
    wrong = next((label for label in labels if not alphabet.knows(label)), None)
    if wrong is not None:
        raise ValueError(f"The labels have {shown(wrong)}, {alphabet.complaint}")
    return alphabet.forbidden


def continuations(labels: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """The types of labels, None of O; and whether a segment goes on from a label (row) to the next one (column).

    Labels are read as the script of CoNLL-2000 does; if one says nothing of segments, a segment is a run of one label.

    >>> continuations(["B-X", "I-X", "O"])[1].astype(int).tolist()
    [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    alphabet = Alphabet()
    if not all([alphabet.knows(label) for label in labels]):
        return list(labels), np.eye(len(labels), dtype=bool)
    role, names = alphabet.roles, [*alphabet.types, None]
    return [names[k] for k in alphabet.type_of.tolist()], _GOES_ON[alphabet.same_type, role[:, None], role]


def convert_segments(Y: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """Labels of segments in another scheme.

    They are read as ``maxmargin.metrics.segments`` reads them, whichever scheme they are in; labels that break theirs
    are mended, as the script of CoNLL-2000 understands them.

    Parameters
    ----------
    Y : list of lists of str
        Labels such as "B-PER", or "B" where segments have no types.
    scheme : {"iob1", "iob2", "iobes", "bilou", "bmewo"}
        What they shall be converted to.

    Examples
    --------
    >>> convert_segments([["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]], "iob2")
    [['B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC']]
    >>> convert_segments([["B", "I", "O", "B"]], "bilou")
    [['B', 'L', 'O', 'U']]
    """
    letters = {role: letter for letter, role in SCHEMES[_known(scheme, "scheme")].roles.items()}
    converted = []
    for y, segments in zip(Y, found_segments(Y), strict=True):
        labels, behind = [letters[O]] * len(y), (0, "")
        for start, end, kind in segments:
            touches = behind == (start, kind)
            suffix = "" if kind == NO_TYPE else f"-{kind}"
            labels[start:end] = [letters[role] + suffix for role in _spelled(end - start, scheme, touches)]
            behind = end, kind
        converted.append(labels)
    return converted


def _spelled(length: int, scheme: str, touches: bool) -> list[int]:
    """The roles of the tokens of a segment, which may touch one of its type."""
    if scheme in ("iob1", "iob2"):
        return [B if touches or scheme == "iob2" else I] + [I] * (length - 1)
    return [S] if length == 1 else [B, *[I] * (length - 2), E]
