"""The same work over many images: in parallel, with a cache on disk, and no image that spoils it for the others."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..images import ImageError, ImageSource, decode, read_bytes, read_image, some
from .cache import FeatureCache
from .stacking import Stack, warn_of_cache

_BLOCK = 8  # images handed to a process at a time

# Workers divide the cores among themselves already.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1",
}  # fmt: skip


class Work(Protocol):
    """What is done with an image: an array of unsigned bytes in, an array out, of one type for all images.

    ``color`` says whether it wants RGB or grey. Work that lets other threads run meanwhile may have
    ``releases_gil = True``; it is then shared by threads, and otherwise copied to processes.
    """

    color: bool

    def __call__(self, image: np.ndarray, /) -> np.ndarray: ...


def lacking(extractor: Any) -> list[str]:
    """What an object would need to be work with a name for its results, and does not have."""
    return [name for name in ("__call__", "settings", "color") if not hasattr(extractor, name)]


class Draw:
    """Work that gives some of the rows which describe an image, drawn without replacement.

    The draw depends on the image's pixels, not on its place among others. ``of`` are the settings of ``describe``.
    """

    def __init__(
        self, describe: Callable[[np.ndarray], np.ndarray], of: str, size: int, seed: int, *, color: bool,
        releases_gil: bool,
    ) -> None:  # fmt: skip
        self.describe, self.of, self.size, self.seed = describe, of, size, seed
        self.color, self.releases_gil = bool(color), releases_gil

    def settings(self) -> str:
        return json.dumps({"drawn": self.size, "seed": self.seed, "of": self.of}, sort_keys=True)

    def __call__(self, image: np.ndarray) -> np.ndarray:
        rows = self.describe(image)
        pixels = hashlib.blake2b(image.tobytes(), digest_size=8).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(pixels, "little")])
        return rows[rng.permutation(len(rows))[: self.size]]


def over_images(
    images: Sequence[ImageSource], work: Work, *, cache: str | os.PathLike[str] | None = None, **run: Any
) -> tuple[np.ndarray, np.ndarray]:
    """``work`` of every image, stacked.

    Parameters
    ----------
    images, work, cache, **run
        Those of ``feed_images``. With a cache the stacked results are a read-only map of a file in its folder, so that
        they may be larger than memory.

    Returns
    -------
    values : ndarray, shape (n_kept, …)
    kept : ndarray of int, shape (n_kept,)
        Positions in ``images``, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.features.extraction import over_images
    >>> class Brightness:
    ...     color = False
    ...     def __call__(self, image):
    ...         return image.mean(keepdims=True)[0]
    >>> values, kept = over_images([np.zeros((2, 2)), np.ones((3, 2))], Brightness())
    >>> values.tolist(), kept.tolist()
    ([[0.0], [255.0]], [0, 1])
    """
    with Stack(cache, room=len(images)) as rows:
        kept = feed_images(images, work, rows.take, cache=cache, **run)
        return rows.finish(), kept


def over_ragged_images(
    images: Sequence[ImageSource], work: Work, *, cache: str | os.PathLike[str] | None = None, **run: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``work`` of every image, one after the other, where it gives more rows for some images than for others.

    All but the first dimension must be the same for all images. Parameters are those of ``over_images``.

    Returns
    -------
    values : ndarray, shape (n_rows, …)
        The rows of all images; with a cache a read-only map of a file.
    first : ndarray of int, shape (n_kept + 1,)
        Where the rows of each image begin, and where the last ones end.
    kept : ndarray of int, shape (n_kept,)
        Positions in ``images``, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.features.extraction import over_ragged_images
    >>> class Brightness:
    ...     color = False
    ...     def __call__(self, image):
    ...         return image.mean(axis=1)
    >>> values, first, kept = over_ragged_images([np.zeros((1, 2)), np.ones((3, 2))], Brightness())
    >>> values.tolist(), first.tolist()
    ([0.0, 255.0, 255.0, 255.0], [0, 1, 4])
    """
    with Stack(cache, ragged=True) as rows:
        kept = feed_images(images, work, rows.take, cache=cache, **run)
        return rows.finish(), rows.first, kept


Take = Callable[[int, np.ndarray], str]
"""Is handed what the work gave for image i, in the order of the images; or says why that cannot be used."""


def feed_images(
    images: Sequence[ImageSource],
    work: Work,
    take: Take,
    *,
    settings: str = "",
    cache: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    on_error: str = "raise",
    verbose: int = 0,
) -> np.ndarray:
    """Hands ``work`` of every image to ``take``, and returns the positions of the images of which there was any.

    Parameters
    ----------
    images : sequence of paths and arrays
        Anything that ``read_image`` takes.
    work : Work
        Called with each image.
    take : function
    settings : str, default ""
        Identifies the work in the cache: two works whose results differ must have different settings.
    cache : path, optional
        A folder in which results are kept, under the content of each image and the settings. An image that is there is
        not worked on again, whatever its name is now. The folder grows; it may be deleted when nobody is using it.
    n_jobs : int, optional
        Threads or processes; None is 1, −1 all cores.
    on_error : {"raise", "skip"}
        What happens if images cannot be used. All are tried in any case; then one error names them, or a warning does,
        and the others are returned.
    verbose : int, default 0
        Shows a line with progress if positive.

    Raises
    ------
    ImageError
        If images cannot be used, or none is left.
    """
    from ...estimators.inputs import check_threads  # the processes that work on images import this file, but not those

    _check(images, settings, cache, on_error)
    n, workers = len(images), check_threads(n_jobs)
    task = _Task(work, None if cache is None else FeatureCache(cache, f"color={bool(work.color)} {settings}"))
    broken: list[tuple[ImageSource, int, str]] = []
    kept: list[int] = []
    trouble = ""
    with _progress(n, verbose) as progress, contextlib.closing(_in_order(task, images, workers)) as all_done:
        for i, (source, done) in enumerate(all_done):
            reason = done.reason or take(i, done.value)  # type: ignore[arg-type]
            if reason:
                broken.append((source, i, reason))
            else:
                kept.append(i)
            if done.trouble and not trouble:
                trouble = done.trouble
                warn_of_cache(trouble)
            progress(i + 1, done.cached)
        if broken:
            _complain(broken, n, on_error)
    return np.array(kept, dtype=np.intp)


def _check(images: Any, settings: str, cache: str | os.PathLike[str] | None, on_error: str) -> None:
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}.')
    if isinstance(images, str | bytes | os.PathLike) or not hasattr(images, "__len__"):
        raise TypeError(
            f"images must be a list of paths or arrays, got {type(images).__name__}. "
            "For a folder or a pattern use list_images(path)."
        )
    if not len(images):
        raise ImageError("There are no images: the list is empty.")
    if cache is not None and not settings:
        raise ValueError("A cache needs settings: a text that differs where the results of the work would differ.")


def _complain(broken: list[tuple[ImageSource, int, str]], n: int, on_error: str) -> None:
    lines = [_named(source, i, reason) for source, i, reason in broken]
    message = f"{len(broken)} of {n} images cannot be used:\n  " + some(lines, most=10, between="\n  ")
    if len(broken) == n:
        raise ImageError(f"{message}\nNone is left.")
    if on_error == "raise":
        raise ImageError(f'{message}\nMend or remove them, or leave them out with on_error="skip".')
    warnings.warn(f"{message}\nThey are left out.", stacklevel=4)


def _named(source: ImageSource, i: int, reason: str) -> str:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else f"image {i}"
    return reason if name in reason else f"{name}: {reason}"


class _Done(NamedTuple):
    """What became of an image: its value, or the reason why there is none; and what the cache had to do with it."""

    value: np.ndarray | None
    reason: str = ""
    cached: bool = False
    trouble: str = ""


class _Task:
    """The work of a block of images, wherever it is done."""

    def __init__(self, work: Work, cache: FeatureCache | None) -> None:
        self.work = work
        self.cache = cache
        self.full = False  # the disk refused: go on without

    def __call__(self, source: ImageSource) -> _Done:
        try:
            return self._done(source)
        except (ImportError, MemoryError):  # no image is to blame
            raise
        except ValueError as error:
            return _Done(None, str(error))
        except Exception as error:
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # as compiled code raises it
                raise KeyboardInterrupt from error
            return _Done(None, f"{type(error).__name__}: {error}")

    def _done(self, source: ImageSource) -> _Done:
        color = bool(self.work.color)
        data: bytes | np.ndarray
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            data = read_bytes(path)
        else:
            path, data = "", read_image(source, color=color)
        key = self.cache.key(data) if self.cache else ""
        value = self.cache.load(key) if self.cache else None
        if value is not None:
            return _Done(value, cached=True)
        image = decode(data, path, color=color) if isinstance(data, bytes) else data
        value = np.asarray(self.work(image))
        if value.dtype.hasobject:
            raise TypeError(f"The work gave objects ({value.dtype}), not numbers.")
        trouble = ""
        if self.cache and not self.full:
            try:
                self.cache.store(key, value)
            except OSError as error:
                self.full, trouble = True, f"{self.cache.folder}: {error.strerror or error}"
        return _Done(value, trouble=trouble)


def _in_order(
    task: _Task, images: Sequence[ImageSource], workers: int
) -> Generator[tuple[ImageSource, _Done], None, None]:
    """Images and what became of them, in their order."""
    workers = min(workers, -(-len(images) // _BLOCK))
    if workers == 1:
        yield from ((source, task(source)) for source in images)
        return
    threads = getattr(task.work, "releases_gil", False)
    with (_in_threads if threads else _in_processes)(task, workers) as submit:
        ahead: deque[tuple[list[ImageSource], Future[list[_Done]]]] = deque()
        sources = iter(images)
        while block := list(itertools.islice(sources, 1 if threads else _BLOCK)):
            ahead.append((block, submit(block)))
            if len(ahead) > 2 * workers:
                yield from _first(ahead)
        while ahead:
            yield from _first(ahead)


def _first(ahead: deque[tuple[list[ImageSource], Future[list[_Done]]]]) -> Iterator[tuple[ImageSource, _Done]]:
    block, future = ahead.popleft()
    return zip(block, future.result(), strict=True)


_Submit = Callable[[list[ImageSource]], "Future[list[_Done]]"]


@contextlib.contextmanager
def _in_threads(task: _Task, workers: int) -> Iterator[_Submit]:
    executor = ThreadPoolExecutor(workers, thread_name_prefix="maxmargin-images")
    try:
        yield lambda block: executor.submit(lambda: [task(source) for source in block])
    finally:
        # Interrupted or not, nobody is still at work afterwards; at most the image in hand is waited for.
        executor.shutdown(wait=True, cancel_futures=True)


_task: _Task


def _bind(pickled: bytes) -> None:
    import pickle

    global _task  # noqa: PLW0603
    _task = pickle.loads(pickled)


def _block_done(block: list[ImageSource]) -> list[_Done]:
    return [_task(source) for source in block]


@contextlib.contextmanager
def _in_processes(task: _Task, workers: int) -> Iterator[_Submit]:
    from loky import BrokenProcessPool, ProcessPoolExecutor
    from loky.backend.reduction import dumps

    try:
        pickled = bytes(dumps(task))  # once, and where its failure can be told
    except Exception as error:
        raise TypeError(
            f"The work cannot be sent to other processes ({type(error).__name__}: {error}). Use n_jobs=None."
        ) from error
    executor = ProcessPoolExecutor(workers, initializer=_bind, initargs=(pickled,), env=_ONE_THREAD)
    try:
        yield lambda block: executor.submit(_block_done, block)
    except BrokenProcessPool as error:
        raise RuntimeError(
            "A process that worked on images came to an end before its work did, most often for want of memory. Use a "
            "smaller n_jobs; n_jobs=None shows other reasons. With a cache, what was done before is kept."
        ) from error
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@contextlib.contextmanager
def _progress(n: int, verbose: int) -> Iterator[Callable[[int, bool], None]]:
    """One line on the terminal that is rewritten, and left standing at the end."""
    if verbose <= 0:
        yield lambda done, cached: None
        return
    from rich.console import Console

    console, begin, line, from_cache = Console(stderr=True), time.perf_counter(), "", 0
    try:
        with console.status(f"images: 0 of {n}") as status:

            def show(done: int, cached: bool) -> None:
                nonlocal line, from_cache
                from_cache += cached
                seconds = max(time.perf_counter() - begin, 1e-9)
                kept = f" ({from_cache} from the cache)" if from_cache else ""
                line = f"images: {done} of {n}{kept}, {done / seconds:,.0f} images/s, {seconds:.1f} s"
                left = (n - done) * seconds / done
                status.update(line + (f", about {left:.0f} s left" if done < n else ""))

            yield show
    finally:
        if line:
            console.print(line, highlight=False)
