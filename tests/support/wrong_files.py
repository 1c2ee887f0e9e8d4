"""Wrong calls about files: models, data, shards, checkpoints, pictures of runs."""

import json
import struct

import numpy as np
from wrong_call import Y2, Wrong, X, latent, sparse, svc

import maxmargin as mm
from maxmargin import LinearSVC, plots
from maxmargin.checkpoint import CheckpointError
from maxmargin.data import DataError
from maxmargin.protocols import Chunk


def load(content):
    """Load a file of these bytes."""

    def call(folder):
        (folder / "m.mm").write_bytes(content() if callable(content) else content)
        mm.load(folder / "m.mm")

    return call


def saved(**changes):
    """A model file with other entries in its header."""

    def content():
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as place:
            svc().save(Path(place) / "m.mm")
            raw = (Path(place) / "m.mm").read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8 : 8 + size])
        header["__metadata__"] |= changes
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + raw[8 + size :]

    return content


def train(name, text=None, **options):
    """Train from a file of this name."""

    def call(folder):
        if text is not None:
            (folder / name).write_text(text)
        LinearSVC().fit(mm.data.open(folder / name, **options))

    return call


def parquet(columns):
    def call(folder):
        import pandas as pd

        pd.DataFrame(columns).to_parquet(folder / "t.parquet")
        LinearSVC().fit(mm.data.open(folder / "t.parquet"))

    return call


def opened(what, **options):
    return lambda _: list(mm.data.open(what, **options).chunks())


def converted(**options):
    return lambda folder: mm.data.convert(X, folder / "new", labels=Y2, **options)


def weighted(weights):
    return lambda _: LinearSVC().fit(mm.data.open(X, labels=Y2, weights=weights))


class Chunks:
    """A source of a user's."""

    def __init__(self, x):
        self.x, self.n_features = x, x.shape[1]

    def __len__(self):
        return 20

    def chunks(self):
        yield Chunk(np.arange(20), self.x, Y2)


def resumed(folder):
    LinearSVC(random_state=0).fit(X, Y2, checkpoint=folder / "run")
    LinearSVC(C=7.0, random_state=0).fit(X, Y2, checkpoint=folder / "run")


def over_a_file(folder):
    (folder / "run").write_text("")
    LinearSVC().fit(X, Y2, checkpoint=folder / "run")


CASES = [
    # Models.
    Wrong("no such model", "no.mm", lambda t: mm.load(t / "no.mm"), FileNotFoundError, "does not exist", "Relative paths start at"),
    Wrong("a folder to load", "folder", lambda t: mm.load(t), IsADirectoryError, "is a folder", "Give a model file, which an estimator's save writes"),
    Wrong("a number to load", "path", lambda _: mm.load(5), TypeError, "got 5", "name of a file"),
    Wrong("an estimator to load", "path", lambda _: mm.load(svc()), TypeError, "got LinearSVC", "name of a file"),
    Wrong("no model", "m.mm", load(b"hello, this is text, not a model"), ValueError, "not a model file", "Give a model file"),
    Wrong("a model cut short", "m.mm", load(lambda: saved()()[:300]), ValueError, "cut short", "copy it anew"),
    Wrong("nothing in it", "m.mm", load(b""), ValueError, "not a model file", "Give a model file"),
    Wrong("a newer format", "m.mm", load(saved(version="99")), ValueError, "format version 99", "the release that wrote it"),
    Wrong("another format", "m.mm", load(saved(format="other")), ValueError, "not written by maxmargin", "Give a model file"),
    Wrong("save to a folder", "folder", lambda t: svc().save(t), IsADirectoryError, "is a folder", "name a file to write"),
    Wrong("save nowhere", "m.mm", lambda t: svc().save(t / "no" / "m.mm"), FileNotFoundError, "there is no folder", "Create it first"),
    Wrong("save to None", "path", lambda _: svc().save(None), TypeError, "got None", "name of a file"),
    # Data.
    Wrong("no such file", "no.svm", train("no.svm"), DataError, "does not exist", "does not exist"),
    Wrong("no such pattern", "pattern", lambda t: mm.data.open(str(t / "*.svm")), DataError, "No file fits", "Relative paths"),
    Wrong("a bad value", "t.svm", train("t.svm", "1 1:1\n-1 1:abc\n"), DataError, "line 2, column 4.*'1:abc'", "Needed: label"),
    Wrong("a bad label", "t.svm", train("t.svm", "x 1:1\n"), DataError, "line 1, column 1.*'x' is not a number", "Needed: label"),
    Wrong("an empty file", "t.svm", train("t.svm", ""), DataError, "has no examples", "every line must read"),
    Wrong("CSV", "t.csv", train("t.csv", "a,b\n1,2\n"), DataError, "table in text", r"pyarrow\.csv\.read_csv"),
    Wrong("Excel", "t.xlsx", train("t.xlsx", "PK"), DataError, "Excel table", r"data\.open\(X, labels=y\)"),
    Wrong("a folder", "Folders", lambda t: mm.data.open(t), DataError, "is no data set", r"maxmargin\.data\.convert"),
    Wrong("few features", "t.svm", train("t.svm", "1 9:1\n", n_features=3), DataError, "'9:1' is beyond 3", "Declare more"),
    Wrong("no label column", "labels", parquet({"a": [1.0, 2.0]}), DataError, "has no labels", "label='column'"),
    Wrong("text column", "features", parquet({"a": ["x", "y"], "y": [0, 1]}), DataError, r"not: a \(", "Drop or encode"),
    Wrong("missing cell", "t.parquet", parquet({"a": [1.0, None], "y": [0, 1]}), DataError, "row 1, column 'a'", "on_error='skip'"),
    Wrong("npy cut short", "t.npy", train("t.npy", "xx"), DataError, "not a whole .npy file", r"numpy\.save"),
    Wrong("fewer labels", "labels", opened(X, labels=[0, 1]), DataError, "2 entries, x has 20 rows", "one is needed for each"),
    Wrong("negative weight", "weights", opened(X, labels=Y2, weights=-np.ones(20)), DataError, r"\[0\] is -1", "not negative"),
    Wrong("no weight", "sample_weight", weighted([0.0] * 20), DataError, "are zero", "no example is left"),
    Wrong("sequences with labels=", "labels=", opened([[[1.0], [2.0]], [[3.0]]], labels=[[0, 1], [1]]), DataError, "not alike", r"list\(zip\(X, Y\)\)"),
    Wrong("no columns", "X", lambda _: LinearSVC().fit(mm.data.open(X[:, :0], labels=Y2)), DataError, r"0 feature\(s\)", "minimum of 1"),
    Wrong("complex rows", "x", opened(sparse(complex)), DataError, "complex128", "matrix of numbers"),
    Wrong("complex chunks", "numbers", lambda _: LinearSVC().fit(Chunks(X * 1j)), DataError, "complex128", "matrix of numbers"),
    Wrong("chunk_rows", "chunk_rows", opened(X, chunk_rows="all"), DataError, "not 'all'", "whole number"),
    Wrong("n_features", "n_features", opened(X, n_features="x"), DataError, "not 'x'", "whole number"),
    Wrong("on_error", "on_error", opened(X, on_error="skp"), DataError, "not 'skp'", "'raise' or 'skip'"),
    Wrong("dtype", "dtype", opened(X, dtype="floaty"), DataError, "not 'floaty'", "float32 or float64"),
    Wrong("option of others", "label", opened(X, label="y"), DataError, "label= means nothing", "It is for Parquet"),
    Wrong("nothing to open", "opened", opened(None), DataError, "NoneType", "Needed are paths"),
    Wrong("no pairs", "pair", opened([1, 2, 3]), DataError, "Example 0 is int", r"open\(X, labels=y\)"),
    Wrong("no iterator", "function", opened(lambda: 5), DataError, "returns 5", "yield"),
    Wrong("unknown place", "ftp", opened("ftp://x/y.svm"), DataError, "ftp://x/y.svm", "Known are file, s3, gs and hdfs"),
    Wrong("folder None", "folder", lambda _: mm.data.convert(X, None, labels=Y2), DataError, "not None", "path of a new folder"),
    Wrong("folder in use", "files", lambda t: ((t / "x").touch(), mm.data.convert(X, t, labels=Y2)), DataError, "other files", "Give a new folder"),
    Wrong("progress", "progress", converted(progress="yes"), DataError, "not 'yes'", "a function or None"),
    # Checkpoints.
    Wrong("another run", "C", resumed, CheckpointError, r"C was 1\.0, now it is 7\.0", "Name another folder"),
    Wrong("a file for a folder", "folder", over_a_file, CheckpointError, "File exists", "Name a folder"),
    # Pictures of runs.
    Wrong("not fitted", "estimator_or_history", lambda _: plots.convergence(LinearSVC()), ValueError, r"got LinearSVC\(\)", "Call fit first"),
    Wrong("against", "against", lambda _: plots.convergence(svc(), against="time"), ValueError, "got 'time'", "'seconds'"),
    Wrong("a search", "convergence", lambda _: plots.convergence(latent()), ValueError, "one convex problem", r"plots\.bounds"),
    Wrong("no search", "bounds", lambda _: plots.bounds(svc()), ValueError, "got LinearSVC", "latent variables"),
    Wrong("confusion", "y_true", lambda _: plots.confusion([0, 1], [0]), ValueError, r"\(2,\) and \(1,\)", "one class for each"),
    Wrong("transitions", "SequenceSVM", lambda _: plots.transitions(svc()), ValueError, "got LinearSVC", "Call fit first"),
    Wrong("parts", "model", lambda _: plots.part_weights(svc()), ValueError, "got LinearSVC", "fitted PartClassifier"),
    Wrong("part curve", "results", lambda _: plots.part_curve(5), ValueError, "got 5", "{'joint': {16: 0.7}}"),
    Wrong("detector", "DeformablePartDetector", lambda _: plots.detector_filters(svc()), ValueError, "got LinearSVC", "fitted"),
]  # fmt: skip
