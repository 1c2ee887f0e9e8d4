"""CoNLL files: what is read, what is refused and where, and files that are written and read again."""

import gzip
import re

import pytest

import maxmargin as mm
from maxmargin.data import DataError, pieces, read_conll, write_conll
from maxmargin.protocols import OracleError

CHUNKS = "Rome NNP B-LOC\nfell VBD O\n\n# # B-NP\n5 CD I-NP\n\n"
UNIVERSAL = """\
# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_

1\ta b\t_\tX\tX\t_\t0\troot\t_\t_
"""


def written(folder, text, name="train.conll"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_last_column_is_the_label(tmp_path):
    X, Y = read_conll(written(tmp_path, CHUNKS))
    assert X == [[("Rome", "NNP"), ("fell", "VBD")], [("#", "#"), ("5", "CD")]]
    assert Y == [["B-LOC", "O"], ["B-NP", "I-NP"]]
    assert read_conll(tmp_path / "train.conll", [0, -1])[0] == [["Rome", "fell"], ["#", "5"]]
    assert read_conll(tmp_path / "train.conll", [1], labels=False) == [["NNP", "VBD"], ["#", "CD"]]


def test_universal_dependencies(tmp_path):
    path = written(tmp_path, UNIVERSAL, "es.conllu")
    assert read_conll(path) == ([["vamos", "nos"], ["a b"]], [["VERB", "PRON"], ["X"]])
    assert read_conll(path, ["FORM", "head", "DEPREL"])[0][0] == [("vamos", "0"), ("nos", "1")]


@pytest.mark.parametrize(
    "text",
    [
        CHUNKS.rstrip("\n"),  # no line end at the end
        CHUNKS.replace("\n", "\r\n"),
        "\ufeff" + CHUNKS,
        "-DOCSTART- -X- O\n\n" + CHUNKS,
        "\n\n" + CHUNKS + " \n\n",
        CHUNKS.replace(" ", "  "),
        "# a comment without tabs\n" + CHUNKS.replace(" ", "\t"),
        pytest.param(gzip.compress(CHUNKS.encode()), id="gzip"),  # its bytes tell the time
    ],
)
def test_forms_of_the_same_sentences(tmp_path, text):
    plain = read_conll(written(tmp_path, CHUNKS, "plain.conll"))
    assert read_conll(written(tmp_path, text, "other.conll" + ".gz" * isinstance(text, bytes))) == plain


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a b\nc\n", 2, "1 column, the lines before have 2"),
        ("a X\n\nb\tX\tY\n", 3, "columns"),
        ("a\nb\n", 1, "labels=False"),
        ("", None, "no tokens"),
        ("\n\n", None, "no tokens"),
        (b"a X\n\xff\xfe X\n", 2, "UTF-8"),
        ("caf\xe9 X\n".encode("utf-16"), 1, "is UTF-16 text"),
        ("caf\xe9 X\n".encode("utf-16-le"), 1, "UTF-8|zero"),
        ("cafe X\n".encode("utf-16-be"), 1, "zero"),
        (b"a X\nb \0\n", 2, "zero"),
        ("a X\n" + "b" * (10 << 20) + " X\n", 2, "characters"),
        ("a\tX\n\tX\n", 2, "nothing in column 0"),
        ("a\tX\nb\t\n", 2, "nothing in column 1"),
        ("a X\rb X\r", 1, "carriage return"),
        ("# a\n# b\n", None, "no tokens"),
        ("caf\xe9 X\n".encode("utf-32"), 1, "is UTF-32 text.*iconv -f utf-32"),
        ("a X\n# a whole sentence\n", 2, "comments=True"),
    ],
)
def test_a_bad_file_is_one_error_with_its_line(tmp_path, text, line, said):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=said) as caught:
        read_conll(path)
    assert caught.value.path == str(path)
    assert caught.value.row == line
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_other_encodings_are_named(tmp_path):
    path = written(tmp_path, "caf\xe9 X\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 1 is not UTF-8 text.*encoding='latin-1'"):
        read_conll(path)
    assert read_conll(path, encoding="latin-1") == ([["caf\xe9"]], [["X"]])
    assert next(iter(mm.data.open(path, encoding="latin-1").chunks())).x == [["caf\xe9"]]
    with pytest.raises(DataError, match="line 1 is not ASCII text"):
        read_conll(path, encoding="ascii")
    for encoding in ("utf-16", "nonsense", 5):
        with pytest.raises(DataError, match="encoding must be one that keeps ASCII"):
            read_conll(path, encoding=encoding)
    with pytest.raises(DataError, match="encoding= means nothing for svmlight"):
        mm.data.open(written(tmp_path, "1 1:2\n", "a.svm"), encoding="latin-1")


@pytest.mark.parametrize("columns", [[0, 7], ["FORM"], ["nothing", 1], [True, 1], [0], [0, 0], [0, 2, -1]])
def test_columns_that_are_not_there_or_give_the_label_away(tmp_path, columns):
    with pytest.raises(DataError, match="column"):
        read_conll(written(tmp_path, CHUNKS), columns)


def test_comments_where_a_hash_may_be_a_token(tmp_path):
    path = written(tmp_path, "# source: news\na X\n# b\nb Y\n")
    assert read_conll(path, comments=True) == ([["a", "b"]], [["X", "Y"]])
    assert next(iter(mm.data.open(path, comments=True).chunks())).x == [["a", "b"]]
    marks = written(tmp_path, "# X\n# Y\n", "marks.conll")
    assert read_conll(marks, comments=False) == ([["#", "#"]], [["X", "Y"]])


def test_files_with_other_columns_are_no_more_of_the_same(tmp_path):
    paths = [written(tmp_path, "a A X\n", "a.conll"), written(tmp_path, "\nb Y\n", "b.conll")]
    with pytest.raises(DataError, match=r"b\.conll, line 2 has 2 columns, .*a\.conll has 3.*columns must") as caught:
        read_conll(paths)
    assert (caught.value.path, caught.value.row) == (str(paths[1]), 2)
    assert read_conll(paths, [0, -1]) == ([["a"], ["b"]], [["X"], ["Y"]])


def test_text_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "UNPACKED", 1 << 20)
    path = written(tmp_path, gzip.compress(b"a X\n" * (4 << 20)), "bomb.conll.gz")
    sentences = iter(mm.data.open(path).chunks())
    with pytest.raises(DataError, match=r"bomb\.conll\.gz unpacks to more than \d+ MB, over 100 times.*gunzip"):
        list(sentences)
    path.write_bytes(gzip.compress(("".join(f"{hash(str(k))} X\n" for k in range(100_000))).encode()))
    assert len(read_conll(path)[0][0]) == 100_000, "data is packed less"


def test_errors_of_a_source_name_file_and_line(tmp_path):
    good = "a B-X\nb I-X\n\n" * 40
    paths = [written(tmp_path, good, "a.conll"), written(tmp_path, good + "c O\nd I-X\n", "b.conll")]
    source = mm.data.open(paths, chunk_rows=16)
    with pytest.raises(DataError, match=r"b\.conll, line 122: Y\[80\] has 'I-X' after 'O' at token 1"):
        mm.SequenceSVM(segments="iob2").fit(source)
    tagger = mm.SequenceSVM(max_passes=2).fit(*read_conll(paths[:1]))
    with (
        pytest.raises(OracleError, match=r"b\.conll, line 121: Sequence 80 has the label 'O' at token 0"),
        pytest.warns(UserWarning, match="None of the features"),
    ):
        tagger.certify(source)


def test_what_is_written_is_read_again(tmp_path):
    X, Y = read_conll(written(tmp_path, UNIVERSAL, "es.conllu"), ["FORM", "LEMMA", "UPOS"])
    write_conll(tmp_path / "again.conll", X, Y)
    assert read_conll(tmp_path / "again.conll") == (X, Y)
    for bad in ("", "a\tb", "a\nb"):
        with pytest.raises(ValueError, match="Sequence 0, token 0 has the columns"):
            write_conll(tmp_path / "again.conll", [[bad]], [["X"]])
    assert read_conll(tmp_path / "again.conll") == (X, Y), "what was there is kept"


@pytest.mark.parametrize(
    ("X", "Y", "said"),
    [
        (5, None, "X must be a list, got 5"),
        ([5], None, "Sequence 0 must be a list, got 5"),
        (["ab"], None, "Sequence 0 must be a list, got 'ab'"),
        ([["a"], ["b", None]], None, "Sequence 1, token 1: got None"),
        ([[b"a"]], None, "token 0: got b'a'"),
        ([[()]], None, r"token 0: got \(\)"),
        ([["a"], ["b"]], [["X"]], "Y has 1 sequences, and X has more"),
        ([["a"]], [["X"], ["Y"]], "X has 1 sequences, and Y has more"),
        ([["a"]], ["X"], r"Y\[0\] must be a list, got 'X'"),
        ([["a"]], [["X", "Y"]], "Sequence 0 has 1 tokens, but 2 labels"),
        ([["a"], [" "]], None, "Sequence 1, token 0 has the columns"),
        ([["a\0"]], [["X"]], "zero bytes"),
        ([["\ud800"]], [["X"]], "surrogates"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, X, Y, said):
    with pytest.raises(ValueError, match=said):
        write_conll(tmp_path / "a.conll", X, Y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": None}, {"path": []}, {"path": [None]}, {"path": b"a.conll"}, {"path": ""},
        {"columns": 5}, {"columns": "0,1"}, {"columns": {0, 1}},
        {"separator": 5}, {"separator": ""}, {"separator": "\n"},
        {"labels": "no"}, {"comments": "#"}, {"encoding": "undefined"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_are_named(tmp_path, wrong):
    given = {"path": written(tmp_path, CHUNKS)} | wrong
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=rf"{name} must .*got {re.escape(repr(value))}"):
        read_conll(**given)
    if name == "separator":
        with pytest.raises(ValueError, match="separator must"):
            write_conll(tmp_path / "b.conll", [["a"]], separator=value)


def test_places_that_cannot_be_written_to(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_conll(tmp_path / "no" / "a.conll", [["a"]])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_conll(tmp_path, [["a"]])


def test_a_file_is_a_source_of_sentences(tmp_path):
    """Training from the file gives what training in memory gives, features from templates included."""
    text = "".join(
        f"{word} {tag}\n" + "\n" * (k % 3 == 2) for k, (word, tag) in enumerate([("a", "X"), ("B", "Y")] * 9)
    )
    path = written(tmp_path, text)
    X, Y = read_conll(path)
    tagger = mm.SequenceSVM(features=mm.features.TokenFeatures(), random_state=0, tol=1e-6)
    whole = tagger.fit(X, Y).certificate_
    from_file = tagger.fit(mm.data.open(path, chunk_rows=2)).certificate_
    assert from_file.lower <= whole.upper
    assert whole.lower <= from_file.upper
    assert tagger.predict(X).tolist() == Y
    with pytest.raises(DataError, match="columns= means nothing for svmlight"):
        mm.data.open(written(tmp_path, "1 1:2\n", "a.svm"), columns=[0, 1])
