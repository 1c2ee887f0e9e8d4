"""Options for taggers beside the parameters of SequenceSVM: files of tokens, templates, the development set."""

from __future__ import annotations

from .signatures import Parameter

_COLUMNS = Parameter(
    "columns", None, "str", "Columns of CoNLL files to read, the label last, such as 0,1,-1 or FORM,XPOS,UPOS; by "
    "default all, and in CoNLL-U FORM,UPOS.",
)  # fmt: skip
_ENCODING = Parameter("encoding", None, "str", "Encoding of CoNLL files and text, such as latin-1; UTF-8 by default.")
_COMMENTS = Parameter("comments", False, "bool", "Lines that begin with # are comments, also where # may be a token.")
_READING = (_COLUMNS, _ENCODING, _COMMENTS)
TEMPLATES = (
    Parameter("window", None, "int", "Tokens before and after that templates look at; default: 2."),
    Parameter("affixes", None, "int", "Longest prefixes and suffixes in templates; default: 3."),
    Parameter("no_shape", False, "bool", "Templates without the pattern of capitals and digits."),
    Parameter("no_lowercase", False, "bool", "Templates that compare words as they are written."),
    Parameter("no_pairs", False, "bool", "Templates without neighbouring pairs."),
    Parameter("no_triples", False, "bool", "Templates without neighbouring triples of the columns beside the word."),
    Parameter("gazetteers", None, "str", "Files with one phrase per line, with commas between: cities.txt,names.txt."),
)
TAGGING: dict[str, tuple[Parameter, ...]] = {
    "train": (
        *_READING,
        *TEMPLATES,
        Parameter("dev", None, "path", "Development data: what --tune and --calibrate look at, and is scored."),
        Parameter("tune", None, '{"C"}', "Choose C on the development data, each fit started from the one before."),
        Parameter("grid", None, "sequence of float", "Ascending values that --tune tries; 0.05,0.1,0.2,0.4,0.8."),
        Parameter("calibrate", False, "bool", "Fit a temperature to the development data, for probabilities."),
    ),
    "predict": (
        *_READING,
        Parameter(
            "format", "auto", '{"auto", "conll", "text"}', "Whether files have a token per line or a sentence per line."
        ),
        Parameter("k_best", None, "int", "Write so many labellings of each sentence, best first."),
        Parameter("marginals", False, "bool", "Write the probability of each label, of models with --calibrate."),
    ),
    "certify": _READING,
    "report": _READING,
}
