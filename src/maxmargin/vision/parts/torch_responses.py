"""Responses of parts by PyTorch, on a GPU for instance: many images in one call.

The patches of an atom (see ``Pooling``) are laid side by side, and shorter atoms are filled up with their last patch
again, which changes neither the largest score nor where it is first reached. So the best patches of all atoms of many
images are one matrix product and one maximum.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...solvers.threads import WhileAsked
from .patches import Patches
from .responses import Placed, Pooling, Responder

_BLOCK = 2**30  # bytes for the images of one call, where the device has that much
_BLOCKS = 8  # as many of them, since several threads may ask at once, must fit beside patches that stay on the device
_PINNED = 2**20  # bytes from which on an array is copied through pages that the system keeps in place: that is faster
_LOAD = 2**28  # bytes of patches that are brought to the device together


class TorchResponder(Responder):
    """Responses on a device of PyTorch; what ``Responder`` finds, up to rounding.

    Patches are brought to the device once if there is room, and for every call otherwise. Those in float16 stay so.

    Parameters
    ----------
    patches : Patches
    pooling : Pooling
    device : str
        As PyTorch calls it: "cuda", "cuda:1", "cpu".
    memory : int or None
        Bytes of the device that may be used, though an image at a time is the least. None: most of what is free now.
    """

    def __init__(self, patches: Patches, pooling: Pooling, device: str = "cuda", memory: int | None = None) -> None:
        super().__init__(patches, pooling)
        self._torch = torch = _imported()
        self.device = existing_device(device)
        self._stored = np.dtype(np.float16) if patches.values.dtype == np.float16 else self.dtype
        free = _free(torch, self.device) if memory is None else int(memory)
        self._block = _BLOCK if free is None else min(_BLOCK, free // (2 * _BLOCKS))
        self._member = self._put(pooling.member)
        self._lay_out(self._atoms)
        held = len(patches.values) * patches.n_features * self._stored.itemsize
        self.resident = free is None or held + _BLOCKS * self._block <= free
        """Whether the patches are on the device."""
        if self.resident:
            self._values = self._loaded()
            self._first = self._put(patches.first[:-1].reshape(-1, patches.n_views).astype(np.int64))

    def respond(self, ids: np.ndarray, filters: np.ndarray) -> Placed:
        n_parts, n_views, n_regions = len(filters), self.patches.n_views, self.pooling.n_regions
        responses = np.empty((ids.size, n_parts, n_regions))
        places = np.empty((ids.size, n_views, n_parts, n_regions), np.int32)
        row = self.patches.n_features * (self._stored.itemsize + self.dtype.itemsize) + n_parts * self.dtype.itemsize
        regions = n_regions * self.pooling.n_atoms * n_parts * 2 * self.dtype.itemsize
        sizes = n_views * (self.pooling.n_atoms * self._longest[ids] * (row + 32) + regions)
        with self._exactly():
            turned = self._put(np.ascontiguousarray(filters.T, dtype=self.dtype))
            for some in self._blocks(sizes):
                best, place = self._best(ids[some], turned)
                responses[some] = self._fetched(best).mean(axis=1, dtype=np.float64)
                places[some] = self._fetched(place)
        return Placed(responses, places)

    def scores_at(self, ids: np.ndarray, filters: np.ndarray, places: np.ndarray) -> np.ndarray:
        scores = np.empty((ids.size, len(filters), self.pooling.n_regions))
        with self._exactly():
            turned = self._put(np.ascontiguousarray(filters, dtype=self.dtype))[:, None]
            for some in self._blocks(self._sizes_at(ids, len(filters))):
                features, absent = self._features_at(ids[some], places[some])
                found = (features * turned).sum(dim=-1).masked_fill_(absent, 0.0)
                scores[some] = self._fetched(found).mean(axis=1, dtype=np.float64)
        return scores

    def rows(self, ids: np.ndarray, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
        n_parts = weights.shape[1]
        factors = np.multiply(weights, -1.0 / self.patches.n_views, dtype=self.dtype, casting="same_kind")
        rows = np.empty((ids.size, n_parts, self.patches.n_features), self.dtype)
        with self._exactly():
            for some in self._blocks(self._sizes_at(ids, n_parts)):
                features, absent = self._features_at(ids[some], places[some])
                factor = self._put(factors[some])[:, None].expand(absent.shape).masked_fill(absent, 0.0)
                rows[some] = self._fetched(features.mul_(factor[..., None]).sum(dim=(1, 3)))
        return rows.reshape(ids.size, n_parts * self.patches.n_features)

    def precise(self) -> TorchResponder:
        """One for the same patches that computes in float64, where the device has it: Apple's GPUs have not."""
        other = copy.copy(self)
        other.dtype = np.dtype(np.float32 if self.device.type == "mps" else np.float64)
        return other

    # Which patches an atom has.

    def _lay_out(self, atom: np.ndarray) -> None:
        """The patches of every view, atom by atom, as numbers within the view."""
        n_views, n_atoms = self.patches.n_views, self.pooling.n_atoms
        first = self.patches.first.astype(np.int64)
        view = np.repeat(np.arange(first.size - 1), np.diff(first))
        order = np.argsort(view * n_atoms + atom, kind="stable")
        count = np.bincount(view * n_atoms + atom, minlength=(first.size - 1) * n_atoms).reshape(-1, n_views, n_atoms)
        self._longest = np.maximum(count.reshape(len(count), -1).max(axis=1, initial=0), 1)
        begin = (np.cumsum(count) - count.ravel()).reshape(count.shape)
        # One more at the end: this is where an empty atom may begin.
        self._within = self._put(np.append(order - first[view[order]], 0).astype(np.int32))
        self._begin, self._count = self._put(begin), self._put(count)

    def _best(self, ids: np.ndarray, turned: object) -> tuple[Any, Any]:
        """Largest scores in every region of every view, and their places: (n, n_views, n_parts, n_regions)."""
        torch = self._torch
        values, base = self._patches_of(ids)
        images = self._put(ids.astype(np.int64))
        count, begin = self._count[images], self._begin[images]
        step = torch.arange(int(self._longest[ids].max()), device=self.device)
        last = (count - 1).clamp_(min=0)[..., None]
        within = self._within[begin[..., None] + torch.minimum(step, last)].long()
        index = (within + base[:, :, None, None]).clamp_(max=len(values) - 1)  # an empty atom has patches of others
        scores = (self._rows(values, index) @ turned).view(*index.shape, -1)
        top, at = scores.max(dim=3)
        del scores
        place = within.gather(3, at)
        top.masked_fill_(count[..., None] == 0, -torch.inf)
        seen = top[:, :, None].masked_fill(~self._member[:, :, None], -torch.inf)
        best, which = seen.max(dim=3)
        place = place.gather(2, which)
        nowhere = best == -torch.inf
        best, place = best.masked_fill_(nowhere, 0.0), place.masked_fill_(nowhere, -1)
        return best.transpose(2, 3).contiguous(), place.transpose(2, 3).to(torch.int32).contiguous()

    def _features_at(self, ids: np.ndarray, places: np.ndarray) -> tuple[Any, Any]:
        """Features at places (n, n_views, n_parts, n_regions), and whether there is no patch."""
        values, base = self._patches_of(ids)
        place = self._put(np.ascontiguousarray(places))
        index = (base[:, :, None, None] + place).clamp_(0, len(values) - 1)
        return self._rows(values, index).view(*index.shape, -1), place < 0

    def _rows(self, values: Any, index: Any) -> Any:
        return values.index_select(0, index.reshape(-1)).to(getattr(self._torch, self.dtype.name))

    # Blocks of images that fit.

    def _blocks(self, sizes: np.ndarray) -> Iterator[slice]:
        """Images that fit together, if each takes as many bytes as the largest of them; one of them at least."""
        start, largest = 0, 0
        for i, size in enumerate(sizes.tolist()):
            largest = max(largest, size)
            if i > start and (i + 1 - start) * largest > self._block:
                yield slice(start, i)
                start, largest = i, size
        if sizes.size:
            yield slice(start, sizes.size)

    def _sizes_at(self, ids: np.ndarray, n_parts: int) -> np.ndarray:
        """Bytes that the features at places of each image take."""
        row = self.patches.n_features * (self._stored.itemsize + 2 * self.dtype.itemsize) + 32
        sizes = np.full(ids.size, self.patches.n_views * n_parts * self.pooling.n_regions * row)
        if not self.resident:
            views = np.diff(self.patches.first[:: self.patches.n_views])
            sizes += views[ids] * self.patches.n_features * self._stored.itemsize
        return sizes

    def _patches_of(self, ids: np.ndarray) -> tuple[Any, Any]:
        """Patches on the device, and where those of each view of the images begin, (n, n_views)."""
        if self.resident:
            return self._values, self._first[self._put(ids.astype(np.int64))]
        torch, n_views, first = self._torch, self.patches.n_views, self.patches.first
        images, position = np.unique(ids, return_inverse=True)
        some = [self.patches.values[self.patches.of(i)] for i in images.tolist()]
        start = np.cumsum([0] + [len(values) for values in some])
        staged = torch.zeros(
            (max(1, int(start[-1])), self.patches.n_features),
            dtype=getattr(torch, self._stored.name),
            pin_memory=self.device.type == "cuda",
        )
        np.concatenate(some, out=staged.numpy()[: start[-1]])
        views = first[ids[:, None] * n_views + np.arange(n_views)]
        base = start[position.ravel()][:, None] + views - views[:, :1]
        return staged.to(self.device, non_blocking=True), self._put(base.astype(np.int64))

    # To the device and back.

    def _loaded(self) -> Any:
        """All patches on the device; one of zeros if there are none, so that there is something to point at."""
        torch, values = self._torch, self.patches.values
        shape = (max(1, len(values)), self.patches.n_features)
        out = torch.zeros(shape, dtype=getattr(torch, self._stored.name), device=self.device)
        step = max(1, _LOAD // max(1, shape[1] * self._stored.itemsize))
        for at in range(0, len(values), step):
            out[at : at + step] = torch.from_numpy(np.array(values[at : at + step], dtype=self._stored)).to(self.device)
        return out

    def _put(self, array: np.ndarray) -> Any:
        return self._torch.from_numpy(array if array.flags.writeable else array.copy()).to(self.device)

    def _fetched(self, tensor: Any) -> np.ndarray:
        if self.device.type != "cuda" or tensor.nbytes < _PINNED:
            return tensor.cpu().numpy()
        return self._torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor).numpy()

    @contextmanager
    def _exactly(self) -> Iterator[None]:
        with self._torch.inference_mode(), _all_digits():
            yield


def _full_products() -> Callable[[], None]:
    """Products of float32 with all of its digits, whatever shorter formats a user has allowed PyTorch: TF32, bfloat16.

    Returns what allows them again.
    """
    torch = _imported()
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # before PyTorch 2.9 there is one for all
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        return partial(torch.set_float32_matmul_precision, before)
    kinds = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    allowed = [(kind, kind.fp32_precision) for kind in kinds if kind.fp32_precision not in ("ieee", "none")]

    def allow(precisions: list[tuple[Any, str]]) -> None:
        for kind, precision in precisions:
            kind.fp32_precision = precision

    allow([(kind, "ieee") for kind, _ in allowed])
    return partial(allow, allowed)


_all_digits = WhileAsked(_full_products)


def _imported() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'{error}. Responses on another device need it: pip install "maxmargin[torch]".') from error
    return torch


def existing_device(name: object) -> Any:
    """The device of that name, if one can compute on it."""
    torch = _imported()
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, TypeError) as error:
        there = ["'cpu'"]
        for kind in ("cuda", "xpu"):
            found = getattr(torch, kind, None)
            if found is not None and found.is_available():
                there += [f"'{kind}:{i}' ({found.get_device_name(i)})" for i in range(found.device_count())]
        if torch.backends.mps.is_available():
            there.append("'mps'")
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(
            f"device={name!r} cannot be used: {reason}. PyTorch {torch.__version__} has {', '.join(there)} here."
        ) from error
    return device


def _free(torch: Any, device: Any) -> int | None:
    """Bytes of a device that may be taken, or None if it does not say: a tenth of what is free is left to others."""
    if device.type != "cuda":
        return None
    cuda, at = torch.cuda, torch.cuda.current_device() if device.index is None else device.index
    kept = cuda.memory_reserved(at) - cuda.memory_allocated(at)  # by PyTorch, for whoever asks next
    return int(0.9 * (cuda.mem_get_info(at)[0] + kept))
