"""Feature maps of regions: what they do to histograms, to features of any kind, and to files in place of arrays."""

import numpy as np
import pytest

from maxmargin.vision.features import maps
from maxmargin.vision.features.maps import MAPS, map_for, mapped, mostly_sparse


@pytest.fixture
def counts(rng):
    X = rng.poisson(2.0, (7, 2, 3, 5)).astype(np.float32)
    X[0, 0, 0] = 0.0
    return X


def test_maps_are_what_they_are_called(counts):
    whole = counts.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(counts / whole)
        direction = np.nan_to_num(counts / np.linalg.norm(counts, axis=-1, keepdims=True))
    for name, expected in (("sqrt", np.sqrt(share)), ("root", np.sqrt(counts)), ("l2", direction), ("none", counts)):
        found = MAPS[name](counts)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert not found[0, 0, 0].any()  # an empty region stays empty
        if name in ("sqrt", "l2"):
            np.testing.assert_allclose(np.linalg.norm(found, axis=-1), counts.any(axis=-1), atol=1e-6)


@pytest.mark.parametrize("name", ["sqrt", "root"])
def test_negative_numbers_have_no_square_root(name, counts):
    counts[3, 1, 1, 2] = -2.5
    with pytest.raises(ValueError, match=f"feature_map='{name}' is for .*, and there is a value of -2.5"):
        mapped(name, counts)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda X: X, "sqrt"),
        (lambda X: X.astype(np.uint16), "sqrt"),
        (lambda X: X > 0, "sqrt"),
        (lambda X: X + 0.5, "none"),
        (lambda X: -X, "none"),
        (lambda X: np.where(X > 3, np.nan, X), "none"),
    ],
)
def test_histograms_are_whole_numbers_from_zero_on(change, name, counts):
    assert map_for(change(counts)) == name


def test_zeros_are_counted(counts):
    counts[:] = 1.0
    assert not mostly_sparse(counts)
    counts.ravel()[: int(0.3 * counts.size)] = 0.0
    assert mostly_sparse(counts)


@pytest.mark.parametrize(("name", "centred"), list(zip(MAPS, [False, True, True, False], strict=True)))
def test_files_and_blocks_give_what_arrays_give(name, centred, counts, tmp_path, monkeypatch):
    mean, before = np.arange(5, dtype=np.float32) if centred else None, counts.copy()
    expected = mapped(name, counts, mean)
    np.testing.assert_allclose(expected, MAPS[name](counts) - (mean if centred else 0.0), rtol=1e-6, atol=1e-7)
    file = np.memmap(tmp_path / "counts", np.float32, "w+", shape=counts.shape)
    file[:] = counts
    file.flush()
    monkeypatch.setattr(maps, "_BLOCK", 1)
    found = mapped(name, np.memmap(tmp_path / "counts", np.float32, "r", shape=counts.shape), mean, tmp_path)
    assert isinstance(found, np.memmap)  # it may be larger than memory
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(mapped(name, counts, mean), expected)
    np.testing.assert_array_equal(file, before)  # and the file is as it was
    np.testing.assert_array_equal(counts, before)
