"""Model files that are damaged, by chance or on purpose: one error, or an estimator that predicts."""

import copy
import hashlib
import json
import re
import struct
import warnings

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import models
from maxmargin.regularizers import GroupNorm

TYPES = {"F64": "f8", "F32": "f4", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "BOOL": "?"}
WILD = [
    -1, 0, 2, 10**9, 2**62, 10**30, 0.5, 1e300, float("nan"), float("inf"), True, None, "", "x", [], {}, [1, 2],
    {"tuple": [1, 2]}, {"text": ["a", "b"], "dtype": "U", "shape": [2]}, "a model of the user's",
    {"text": [], "dtype": "O", "shape": [0, 2**40]}, {"text": ["a"], "dtype": "<U250000000", "shape": [1]},
]  # fmt: skip


def _fitted():
    """Small estimators of most families, with what they predict on."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(18, 3)), np.arange(18) % 3
    words, tags = [["the", "dog", "barks"], ["dog", "barks"]], [["D", "N", "V"], ["N", "V"]]
    trees = [(rng.normal(size=(3, 2)), np.array([[0, 1], [1, 2]])) for _ in range(4)]
    bags = rng.normal(size=(9, 2, 3))
    yield (
        mm.LinearSVC(multi_class="ovr", regularizer=GroupNorm([[0, 1], [2]], 0.5, l2=1.0)),
        X,
        np.array(list("abc"))[y],
    )
    yield mm.LinearSVC(), X, y > 0
    yield mm.LinearSVR(), X, X[:, 0]
    yield mm.RankingSVM(), X, y.astype(float)
    yield mm.StructuralSVM(models.Multiclass()), X, y
    yield mm.StructuralSVM(models.Graph()), trees, [np.array([0, 1, 0])] * 4
    yield mm.SequenceSVM(allowed_transitions="observed"), words, tags
    yield mm.SequenceSVM(order=2), words, tags
    pieces = [[(0, 2, 1), (2, 3, 0)], [(0, 1, 0), (1, 3, 1)]]
    yield mm.StructuralSVM(models.SemiMarkov()), list(X[:6].reshape(2, 3, 3)), pieces
    heads = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    yield mm.StructuralSVM(models.DependencyTree(n_features=50)), words, heads
    derived = [("S", "A", ("S", "B", "A")), ("S", ("S", "A", "B"), "B")]
    rules = [("S", "A", "S"), ("S", "B", "A"), ("S", "S", "B"), ("S", "A", "B")]
    yield mm.StructuralSVM(models.Grammar(rules, "S")), list(X[:6].reshape(2, 3, 3)), derived
    yield mm.SequenceSVM(segments="iob2"), words, [["O", "B-X", "I-X"], ["B-X", "O"]]
    yield mm.MultilabelSVM(edges="full"), X, (X > 0).astype(int)
    yield mm.LatentSVC(), bags, np.arange(9) % 3
    yield mm.LatentStructuralSVM(models.Bags(states="separate"), max_bounds=2), bags, np.arange(9) % 2
    yield mm.GMMKMeans(2), X, None


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(bytes, X, what is predicted) of every one of them."""
    path = tmp_path_factory.mktemp("models") / "model.mm"
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, X, y in _fitted():
            estimator.set_params(random_state=0).fit(X, y).save(path)
            found.append((path.read_bytes(), X, repr(estimator.predict(X))))
    return found


def _flip(raw, rng):
    raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))


def _cut(raw, rng):
    del raw[int(rng.integers(len(raw))) :]


def _repeat(raw, rng):
    at = int(rng.integers(len(raw)))
    raw[at:at] = raw[at : at + 16]


def _swap(raw, rng):
    a, b = rng.integers(8, len(raw) - 8, 2).tolist()
    raw[a : a + 4], raw[b : b + 4] = raw[b : b + 4], raw[a : a + 4]


@pytest.mark.parametrize("damage", [_flip, _cut, _repeat, _swap])
def test_bytes_that_changed_are_noticed(damage, saved, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "model.mm"
    for raw, _, _ in saved:
        for _ in range(8):
            changed = bytearray(raw)
            damage(changed, rng)
            if changed != raw:
                path.write_bytes(changed)
                with pytest.raises(mm.ModelFileError, match=r"model\.mm"):
                    mm.load(path)


def _sealed(outer, arrays):
    """A file of these parts, with the checksum that belongs to it."""
    outer, body = {"__metadata__": {**outer, "checksum": "0" * 32}}, b""
    for name, array in sorted(arrays.items(), key=lambda pair: -pair[1].itemsize):
        kind = next(k for k, v in TYPES.items() if np.dtype(v) == array.dtype)
        place = [len(body), len(body) + array.nbytes]
        outer[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
        body += array.tobytes()
    head = json.dumps(outer, separators=(",", ":")).encode()
    raw = struct.pack("<Q", len(head)) + head + body
    begin, end = re.search(rb'"checksum":"(0{32})"', raw).span(1)
    return raw[:begin] + hashlib.blake2b(raw, digest_size=16).hexdigest().encode() + raw[end:]


def _parts(raw):
    (length,) = struct.unpack("<Q", raw[:8])
    outer, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    metadata = outer.pop("__metadata__")
    arrays = {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
        for name, entry in outer.items()
    }
    return metadata, json.loads(metadata["header"]), arrays


def _leaves(value, place=()):
    """Where in the header numbers, text and empty lists are."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inside:
        yield from _leaves(held, (*place, key))
    if not inside:
        yield place


def _change_header(header, rng):
    places = list(_leaves(header))
    *way, last = places[int(rng.integers(len(places)))]
    held = header
    for key in way:
        held = held[key]
    held[last] = copy.deepcopy(WILD[int(rng.integers(len(WILD)))])


def _change_array(arrays, rng):
    name = list(arrays)[int(rng.integers(len(arrays)))]
    array, other = arrays[name], list(arrays)[int(rng.integers(len(arrays)))]
    with np.errstate(all="ignore"):
        changed = [
            array.T.copy(), array.ravel(), array[None], array[:0], np.concatenate([array, array]), arrays[other],
            array.astype(list(TYPES.values())[int(rng.integers(len(TYPES)))]), np.full_like(array, -1),
        ]  # fmt: skip
        if array.dtype.kind == "f":
            changed += [array * np.nan, array * 1e300]
    arrays[name] = changed[int(rng.integers(len(changed)))]


def test_files_made_to_deceive_are_refused_or_predict(saved, tmp_path):
    """The checksum is right, and something else is not."""
    rng, path, refused, same = np.random.default_rng(0), tmp_path / "model.mm", 0, 0
    for raw, X, answers in saved:
        for turn in range(30):
            metadata, header, arrays = _parts(raw)
            if turn:
                _change_header(header, rng) if turn % 2 else _change_array(arrays, rng)
            path.write_bytes(_sealed(metadata | {"header": json.dumps(header)}, arrays))
            try:
                loaded = mm.load(path)
            except mm.ModelFileError:
                refused += 1
                assert turn
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = repr(loaded.predict(X))
                except ValueError as error:  # a chain may forbid so much that nothing is left
                    assert turn and "every labelling of that length is forbidden" in str(error)
                    continue
            same += found == answers
            assert turn or found == answers
    assert refused > 100 and same > 11
