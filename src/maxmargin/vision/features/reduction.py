"""Patches with fewer features: the leading directions of a sample of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ...persistence import storable_part
from ..images import ImageSource
from .extraction import Draw, feed_images, lacking
from .numbers import whole
from .patch_format import checked_precision, patch_dtype

_VERSION = 1  # of the numbers: raised when the same settings give others
_BLOCK = 4096  # rows that are multiplied at a time
_TIED = 1e-3  # entries whose sizes differ by no more than this share are equally large


@storable_part(
    "extractor", "n_components", "n_sampled", "random_state", "dtype",
    mean_="float[d]", basis_="float[c, d]", variances_="float[c]",
)  # fmt: skip
@dataclass(eq=False, repr=False)
class ReducedPatches:
    """Patches of another extractor, projected onto the principal components of a sample.

    A filter w over the reduced features responds w·B(f − μ) = (Bᵀw)·f − w·Bμ, so it is a filter over the old ones,
    ``unreduced(w)``, less a constant.

    Parameters
    ----------
    extractor : HOGPatches, CNNPatches, or the like
        Gives an array with the fields ``window`` and ``value`` for an image.
    n_components : int, default 128
        Features that remain.
    n_sampled : int, default 100 000
        Patches that mean and directions are estimated from: as many from each image, drawn at random. Images that have
        fewer give all.
    random_state : int, default 0
        Seed of the draw, which depends on an image's pixels and not on its place among the others.
    dtype : {"float32", "float16"}
        Of the values.

    Attributes
    ----------
    mean_ : array (n_features,) of float32
        μ, the mean of the sample.
    basis_ : array (n_components, n_features) of float32
        B, orthonormal rows, the direction with the largest variance first. The largest entry of each is positive; where
        several are equally large, to a part in a thousand, the first of them.
    variances_ : array (n_components,) of float32
        Of the sample, along those directions.

    Examples
    --------
    >>> from maxmargin.vision import HOGPatches
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.integers(0, 256, (64, 80)).astype(np.uint8) for _ in range(5)]
    >>> reduced = ReducedPatches(HOGPatches(), n_components=16).fit(images)
    >>> reduced(images[0])["value"].shape, reduced.unreduced(np.ones(16)).shape
    ((34, 16), (6, 6, 32))
    """

    extractor: Any
    n_components: int = 128
    _: KW_ONLY
    n_sampled: int = 100_000
    random_state: int = 0
    dtype: str = "float32"
    mean_: np.ndarray = field(init=False)
    basis_: np.ndarray = field(init=False)
    variances_: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        missing = lacking(self.extractor)
        if missing:
            raise ValueError(
                f"The extractor of patches must have {', '.join(missing)}; got {self.extractor!r}. HOGPatches() is one."
            )
        self.n_components = whole("n_components", self.n_components, 1)
        self.n_sampled = whole("n_sampled", self.n_sampled, 2)
        self.random_state = whole("random_state", self.random_state, 0)
        self.dtype = checked_precision(self.dtype)

    @property
    def color(self) -> bool:
        return self.extractor.color

    @property
    def releases_gil(self) -> bool:
        return getattr(self.extractor, "releases_gil", False)

    @property
    def n_views(self) -> int:
        return getattr(self.extractor, "n_views", 1)

    @property
    def patch_shape(self) -> tuple[int]:
        return (self.n_components,)

    def fit(self, images: Sequence[ImageSource], **run: Any) -> ReducedPatches:
        """Estimate mean and directions from images: paths or arrays, whatever ``read_image`` takes.

        ``cache``, ``n_jobs``, ``on_error`` and ``verbose`` are those of ``extraction.over_images``. The sample is not
        held in memory. Where this is interrupted, what was learned before remains.
        """
        if not len(images):
            raise ValueError("Directions are estimated from images, and none were given.")
        draw = Draw(
            self._values, self.extractor.settings(), -(-self.n_sampled // len(images)), self.random_state,
            color=self.color, releases_gil=self.releases_gil,
        )  # fmt: skip
        moments = _Moments()
        feed_images(images, draw, moments.take, settings=draw.settings(), **run)
        self.mean_, self.basis_, self.variances_ = moments.leading(self.n_components)
        return self

    def _values(self, image: np.ndarray) -> np.ndarray:
        values = self.extractor(image)["value"]
        if not np.isfinite(values).all():
            raise ValueError("some features are infinite or not a number")
        return values

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The patches of an image, reduced."""
        basis = self._basis()
        patches = self.extractor(image)
        out = np.empty(len(patches), patch_dtype(len(basis), self.dtype))
        out["window"] = patches["window"]
        out["value"] = patches["value"].astype(np.float32, copy=False) @ basis.T - basis @ self.mean_
        return out

    def unreduced(self, w: np.ndarray) -> np.ndarray:
        """Filters over the reduced features, (…, n_components), as filters over what was reduced.

        They have the shape that the extractor gives to its filters, (…, size, size, 32) for ``HOGPatches``.
        """
        found = np.asarray(w) @ self._basis()
        return self.extractor.unreduced(found) if hasattr(self.extractor, "unreduced") else found

    def settings(self) -> str:
        """All that the values depend on, as a text."""
        learned = hashlib.blake2b(digest_size=16)
        for array in (self._basis(), self.mean_):
            learned.update(array.astype("<f4").tobytes())
        said = {"reduced": _VERSION, "of": self.extractor.settings(), "by": learned.hexdigest(), "dtype": self.dtype}
        return json.dumps(said, sort_keys=True)

    def _basis(self) -> np.ndarray:
        basis = getattr(self, "basis_", None)
        if basis is None:
            raise AttributeError("There are no directions yet: call fit with images, or set mean_ and basis_.")
        return basis


class _Moments:
    """Sums of rows and of their products, about the mean of the first block: the rows themselves are not kept.

    Products of a block are in single precision, and are added up in double.
    """

    def __init__(self) -> None:
        self._block: list[np.ndarray] = []
        self._n = 0

    def take(self, i: int, rows: np.ndarray) -> str:
        """Adds the rows of image i; or says why they do not fit the others."""
        if self._block and rows.shape[1:] != self._block[0].shape[1:]:
            return f"its patches have features of shape {rows.shape[1:]}, those before {self._block[0].shape[1:]}"
        self._block.append(rows.astype(np.float32))
        if sum(map(len, self._block)) >= _BLOCK:
            self._add()
        return ""

    def _add(self) -> None:
        rows = np.concatenate(self._block)
        if not self._n:
            d = rows.shape[1]
            self._shift = rows.mean(axis=0) if len(rows) else np.zeros(d, np.float32)
            self._sum, self._products = np.zeros(d), np.zeros((d, d))
        rows -= self._shift
        self._sum += rows.sum(axis=0, dtype=np.float64)
        self._products += rows.T @ rows
        self._n += len(rows)
        self._block = [rows[:0]]  # whose shape the next ones must have

    def leading(self, n_components: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean of the rows, the directions with the largest variances, and those."""
        self._add()
        n, d = self._n, self._sum.size
        if d < n_components:
            raise ValueError(
                f"Patches of {d} features cannot be reduced to {n_components}. Use a smaller n_components."
            )
        if n <= n_components:
            raise ValueError(
                f"{n} patches are too few to estimate {n_components} directions from. Give more images, or use a "
                "smaller n_components or a larger n_sampled."
            )
        away = self._sum / n
        variances, directions = np.linalg.eigh(self._products / n - np.outer(away, away))
        basis = with_signs(directions[:, ::-1][:, :n_components].T)
        variances = np.maximum(variances[::-1][:n_components], 0.0)
        mean = (self._shift + away).astype(np.float32)
        return mean, np.ascontiguousarray(basis, np.float32), variances.astype(np.float32)


def with_signs(basis: np.ndarray) -> np.ndarray:
    """Directions, each with the sign that makes its largest entry positive, the first of those that are tied.

    Where images are also seen mirrored, many a direction has every entry twice, with opposite signs: which of the two
    is larger is up to rounding.
    """
    size = np.abs(basis)
    first = (size >= (1.0 - _TIED) * size.max(axis=1, keepdims=True)).argmax(axis=1)
    return basis * np.where(np.take_along_axis(basis, first[:, None], axis=1) < 0.0, -1.0, 1.0)
