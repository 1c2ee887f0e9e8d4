"""What parts respond to images, in which regions, and where: on CPUs here, on other devices by PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...solvers.threads import in_parts
from ..kernels import part_places as kernels
from .patches import Patches

_MOST = 2**26  # regions times atoms: a table of them is kept
AT_A_TIME = 64  # images for which places are at hand besides those that are asked for


class Pooling:
    """The regions of an image in which the largest response of a part is taken: cells of one or several grids.

    The cells of all grids cut the image into *atoms*; a patch lies in the atom of its centre, and a region is a union
    of atoms. So every response is looked at once, whatever the number of regions.

    Parameters
    ----------
    grids : sequence of int
        Rows, and as many columns, of each grid: (1, 2) are the whole image and its four quarters.

    Examples
    --------
    >>> pooling = Pooling((1, 2))
    >>> pooling.n_regions, pooling.n_atoms
    (5, 4)
    >>> pooling.atoms(np.array([[0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 1.0, 0.4]])).tolist()
    [0, 1]
    >>> pooling.member.astype(int).tolist()
    [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """

    def __init__(self, grids: Sequence[int] = (1, 2)) -> None:
        try:
            self.grids = tuple(int(g) for g in grids)
            right = all(g == h and g >= 1 for g, h in zip(self.grids, grids, strict=True)) and len(self.grids) > 0
            right = right and sum(g * g for g in self.grids) * sum(self.grids) ** 2 <= _MOST
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(
                "regions must be whole numbers from 1 on, and not too large: rows and columns of each grid of regions, "
                f"such as (1, 2); got {grids!r}."
            )
        self.edges = np.unique(np.concatenate([np.arange(g + 1) / g for g in self.grids]))
        centre = 0.5 * (self.edges[1:] + self.edges[:-1])
        strips = [(g, (centre * g).astype(np.int64)) for g in self.grids]  # rows, and columns, between two edges
        self.member = np.concatenate([np.arange(g * g)[:, None] == (at[:, None] * g + at).ravel() for g, at in strips])
        """Which atoms belong to each region, (n_regions, n_atoms)."""

    @property
    def n_regions(self) -> int:
        return int(self.member.shape[0])

    @property
    def n_atoms(self) -> int:
        return int(self.member.shape[1])

    def atoms(self, windows: np.ndarray) -> np.ndarray:
        """The atom that the centre of each window lies in."""
        x = 0.5 * (windows[:, 0] + windows[:, 2])
        y = 0.5 * (windows[:, 1] + windows[:, 3])
        strips = self.edges.size - 1
        column, row = (np.clip(np.searchsorted(self.edges, c, "right") - 1, 0, strips - 1) for c in (x, y))
        return row * strips + column


class Placed(NamedTuple):
    """What parts respond to some images, and where.

    ``responses`` (n, n_parts, n_regions) are averages over the views of an image of the largest scores in each region,
    ``places`` (n, n_views, n_parts, n_regions) the patches that have these scores, counted within their view. A region
    without patches has place −1 and adds nothing.
    """

    responses: np.ndarray
    places: np.ndarray


class Responder:
    """All that training asks of the patches of images; here by matrix products and compiled code.

    It works on an image at a time, and several threads may ask at once. Scores of one image are all that is held in
    memory besides the patches, which may be a map of a file. ``TorchResponder`` is the same on other devices.

    Parameters
    ----------
    patches : Patches
    pooling : Pooling
    """

    def __init__(self, patches: Patches, pooling: Pooling) -> None:
        self.patches, self.pooling = patches, pooling
        self.dtype: np.dtype = np.dtype(np.float64 if patches.values.dtype == np.float64 else np.float32)
        """Of products and of rows."""
        self._atoms = _atoms_of(patches, pooling)

    def respond(self, ids: np.ndarray, filters: np.ndarray) -> Placed:
        """The best places of all filters (n_parts, n_features) in some images."""
        n_parts, n_views, n_regions = len(filters), self.patches.n_views, self.pooling.n_regions
        turned = np.ascontiguousarray(filters.T, dtype=self.dtype)
        responses = np.zeros((ids.size, n_parts, n_regions))
        places = np.empty((ids.size, n_views, n_parts, n_regions), np.int32)
        best = np.empty((self.pooling.n_atoms, n_parts), self.dtype)
        at = np.empty((self.pooling.n_atoms, n_parts), np.int32)
        for p, i in enumerate(ids.tolist()):
            for v, (values, atom) in enumerate(self._views(i)):
                kernels.best_of_atoms(values @ turned, atom, best, at)
                kernels.best_of_regions(best, at, self.pooling.member, 1.0 / n_views, responses[p], places[p, v])
        return Placed(responses, places)

    def scores_at(self, ids: np.ndarray, filters: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Scores at given places instead of the best ones, in the shape of responses."""
        filters = np.ascontiguousarray(filters, dtype=self.dtype)
        scores = np.zeros((ids.size, len(filters), self.pooling.n_regions))
        for p, i in enumerate(ids.tolist()):
            for values, place in self._at(i, places[p]):
                kernels.add_scores_at(values, filters, place, 1.0 / self.patches.n_views, scores[p])
        return scores

    def rows(self, ids: np.ndarray, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """−Σ weight · features at places, for every image a vector (n_parts·n_features,).

        ``weights`` (n, n_parts, n_regions): so that the product with all filters is −Σ weight · score.
        """
        n_parts = weights.shape[1]
        out = np.zeros((ids.size, n_parts, self.patches.n_features), self.dtype)
        for p, i in enumerate(ids.tolist()):
            for values, place in self._at(i, places[p]):
                kernels.add_features_at(values, place, weights[p], 1.0 / self.patches.n_views, out[p])
        return out.reshape(ids.size, n_parts * self.patches.n_features)

    def precise(self) -> Responder:
        """One for the same patches that computes in float64, if the device can."""
        other = copy.copy(self)
        other.dtype = np.dtype(np.float64)
        return other

    def _views(self, i: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Features and atoms of the patches of each view of an image."""
        first = self.patches.first
        for view in range(i * self.patches.n_views, (i + 1) * self.patches.n_views):
            some = slice(int(first[view]), int(first[view + 1]))
            yield np.ascontiguousarray(self.patches.values[some], dtype=self.dtype), self._atoms[some]

    def _at(self, i: int, places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Features of each view of an image, and places among them: where features must be copied, only those."""
        values, first = self.patches.values, self.patches.first
        for v, place in enumerate(places):
            view = i * self.patches.n_views + v
            if values.dtype == self.dtype and values.flags.c_contiguous:
                yield values[int(first[view]) : int(first[view + 1])], place
                continue
            some, number = np.unique(place, return_inverse=True)
            found = np.asarray(values[first[view] + np.maximum(some, 0)], dtype=self.dtype)
            yield found, np.where(place < 0, -1, number.reshape(place.shape)).astype(np.int32)


def responder_for(patches: Patches, pooling: Pooling, device: str | None = None) -> Responder:
    """Who responds: this machine's processors (``device`` None or "cpu"), or a device of PyTorch such as "cuda".

    Examples
    --------
    >>> patches = Patches(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]]), first=np.array([0, 2, 3]))
    >>> responder = responder_for(patches, Pooling((1,)))
    >>> responder.respond(np.array([0, 1]), np.eye(2)).responses[:, :, 0]
    array([[3., 0.],
           [0., 2.]])
    """
    if device is None or device == "cpu":
        return Responder(patches, pooling)
    from .torch_responses import TorchResponder

    return TorchResponder(patches, pooling, device)


def check_device(device: str | None) -> None:
    """An error, if ``responder_for`` cannot compute there."""
    if device is None or device == "cpu":
        return
    from .torch_responses import existing_device

    existing_device(device)


def _atoms_of(patches: Patches, pooling: Pooling) -> np.ndarray:
    """The atom of each patch; without windows there is only one."""
    if patches.windows is not None:
        return pooling.atoms(patches.windows).astype(np.int32)
    if pooling.n_atoms > 1:
        raise ValueError(
            f"regions={pooling.grids} are to be pooled, but nobody knows where in its image a patch is. Use "
            "regions=(1,), or give patches with windows."
        )
    return np.zeros(len(patches.values), np.int32)


def respond_all(responder: Responder, filters: np.ndarray, n_jobs: int = 1) -> Placed:
    """Responses of all images."""
    patches, shape = responder.patches, (len(filters), responder.pooling.n_regions)
    every = Placed(np.empty((len(patches), *shape)), np.empty((len(patches), patches.n_views, *shape), np.int32))

    ids = np.arange(len(patches))

    def fill(some: slice) -> None:
        every.responses[some], every.places[some] = responder.respond(ids[some], filters)

    in_parts(fill, ids.size, AT_A_TIME, n_jobs)
    return every


def responses_of(responder: Responder, filters: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """The same without places, which take as much memory."""
    responses = np.empty((len(responder.patches), len(filters), responder.pooling.n_regions))

    ids = np.arange(len(responses))

    def fill(some: slice) -> None:
        responses[some] = responder.respond(ids[some], filters).responses

    in_parts(fill, ids.size, AT_A_TIME, n_jobs)
    return responses
