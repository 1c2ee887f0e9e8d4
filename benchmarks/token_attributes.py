"""What is said about a token: itself, its endings and shape, and a window of two words on either side.

All attributes are strings that are present or not, without a cut-off for rare ones. Where parts of speech are
given (chunking), so are those in the window, alone and in neighbouring pairs.

>>> attributes(["It", "is"])[0]
['bias', 'w0=it', 'suf2=it', 'suf3=it', 'shape=Xx', 'w-2=<s>', 'w-1=<s>', 'w+1=is', 'w+2=</s>', 'istitle']
>>> attributes(["It", "is"], ["PRP", "VBZ"])[1][9:]
['p-2=<s>', 'p-1=PRP', 'p0=VBZ', 'p+1=</s>', 'p+2=</s>', 'p-2p-1=<s>|PRP', 'p-1p0=PRP|VBZ', 'p0p+1=VBZ|</s>', 'p+1p+2=</s>|</s>']
"""  # noqa: E501

from collections.abc import Sequence
from itertools import groupby, pairwise

WINDOW = ["-2", "-1", "0", "+1", "+2"]


def attributes(words: Sequence[str], parts: Sequence[str] | None = None) -> list[list[str]]:
    """One list of attributes per token."""
    rows = []
    for word, near in zip(words, _windows([word.lower() for word in words]), strict=True):
        low = near[2]
        row = ["bias", f"w0={low}", f"suf2={low[-2:]}", f"suf3={low[-3:]}", f"shape={shape(word)}"]
        row += [f"w{place}={other}" for place, other in zip(WINDOW, near, strict=True) if place != "0"]
        row += ["isdigit"] * word.isdigit() + ["istitle"] * word.istitle()
        rows.append(row)
    if parts is not None:
        for row, near in zip(rows, _windows(parts), strict=True):
            named = list(zip(WINDOW, near, strict=True))
            row += [f"p{place}={part}" for place, part in named]
            row += [f"p{i}p{j}={a}|{b}" for (i, a), (j, b) in pairwise(named)]
    return rows


def shape(word: str) -> str:
    """Capitals, small letters and digits as X, x and d, runs collapsed.

    >>> shape("McDonald's-1984")
    "XxXx'x-d"
    """
    return "".join(symbol for symbol, _ in groupby(map(_symbol, word)))


def _symbol(letter: str) -> str:
    return "X" if letter.isupper() else "x" if letter.islower() else "d" if letter.isdigit() else letter


def _windows(tokens: Sequence[str]) -> list[list[str]]:
    """Five neighbours around each token, with marks for what lies outside the sentence."""
    padded = ["<s>", "<s>", *tokens, "</s>", "</s>"]
    return [padded[i : i + 5] for i in range(len(tokens))]
