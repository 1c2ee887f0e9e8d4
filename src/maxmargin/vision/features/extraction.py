"""The same work over many images: in parallel, with a cache on disk, and no image that spoils it for the others."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence, Sized
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..images import ImageError, ImageSource, decode, read_bytes, read_image, some
from .cache import FeatureCache
from .stacking import Stack


class Work(Protocol):
    """What is done with an image: an array of unsigned bytes in, an array out, of one type for all images.

    ``color`` says whether it wants RGB or grey. Work that lets other threads run meanwhile may have
    ``releases_gil = True``; it is then shared by threads, and otherwise copied to processes.
    """

    color: bool

    def __call__(self, image: np.ndarray, /) -> np.ndarray: ...


def lacking(extractor: object) -> list[str]:
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
    n = len(images)
    task = _Task(work, None if cache is None else FeatureCache(cache, f"color={bool(work.color)} {settings}"))
    broken: list[tuple[ImageSource, int, str]] = []
    kept: list[int] = []
    all_done = _in_order(task, images, min(check_threads(n_jobs), n))
    with _progress(n, verbose) as progress, contextlib.closing(all_done):
        for i, (source, done) in enumerate(zip(images, all_done, strict=True)):
            reason = done.reason or take(i, done.value)  # type: ignore[arg-type]
            if reason:
                broken.append((source, i, reason))
            else:
                kept.append(i)
            progress(i + 1, done.cached)
        if broken:
            _complain(broken, n, on_error)
    return np.array(kept, dtype=np.intp)


def _check(images: object, settings: str, cache: str | os.PathLike[str] | None, on_error: str) -> None:
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}.')
    if isinstance(images, str | bytes | os.PathLike) or not isinstance(images, Sized):
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
    """What became of an image: its value, or the reason why there is none; and whether the cache had it."""

    value: np.ndarray | None
    reason: str = ""
    cached: bool = False


class _Task:
    """The work of an image, wherever it is done."""

    def __init__(self, work: Work, cache: FeatureCache | None) -> None:
        self.work = work
        self.cache = cache

    def __call__(self, source: ImageSource) -> _Done:
        key = ""
        try:
            data, path = self._content(source)
            if self.cache:
                key = self.cache.key(data)
                value = self.cache.load(key)
                if value is not None:
                    return _Done(value, cached=True)
            image = decode(data, path, color=bool(self.work.color)) if isinstance(data, bytes) else data
            value = np.asarray(self.work(image))
            if value.dtype.hasobject:
                raise TypeError(f"The work gave objects ({value.dtype}), not numbers.")
        except (ImportError, MemoryError):  # no image is to blame
            raise
        except ValueError as error:
            return _Done(None, str(error))
        except Exception as error:
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # as compiled code raises it
                raise KeyboardInterrupt from error
            return _Done(None, f"{type(error).__name__}: {error}")
        if self.cache:
            self.cache.store(key, value)
        return _Done(value)

    def _content(self, source: ImageSource) -> tuple[bytes | np.ndarray, str]:
        """What an image is known by in the cache, and its path."""
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            return read_bytes(path), path
        return read_image(source, color=bool(self.work.color)), ""


def _in_order(task: _Task, images: Sequence[ImageSource], workers: int) -> Generator[_Done, None, None]:
    """What became of the images, in their order: on threads, or in processes where the work keeps threads waiting."""
    from joblib import Parallel, delayed

    backend = "threading" if getattr(task.work, "releases_gil", False) else "loky"
    parallel = Parallel(workers, backend=backend, return_as="generator", pre_dispatch="2 * n_jobs")
    yield from parallel(delayed(task)(source) for source in images)


@contextlib.contextmanager
def _progress(n: int, verbose: int) -> Iterator[Callable[[int, bool], None]]:
    """One line on the terminal that is rewritten, and left standing at the end."""
    if verbose <= 0:
        yield lambda done, cached: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = TextColumn("images:"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as line:
        shown, from_cache = line.add_task("", total=n), 0

        def show(done: int, cached: bool) -> None:
            nonlocal from_cache
            from_cache += cached
            line.update(shown, completed=done, description=f"({from_cache} from the cache)" if from_cache else "")

        yield show
