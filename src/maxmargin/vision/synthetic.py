"""Data drawn from known distributions, for experiments in which it must be plain what a model can and cannot see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..validation import whole

SIDE = 32
WORDS_PER_REGION = 1000
N_WORDS = 12
PEAK = 0.1  # by how much a part's own word is likelier than each of the others
PARTS = ("sky", "sea", "rock", "vegetation", "sand", "star", "person", "horse")
SKY, SEA, ROCK, VEGETATION, SAND, STAR, PERSON, HORSE = range(len(PARTS))
MOON = (4, 5)  # rows and columns; there are as many stars as the moon has regions
_CHUNK = 64  # images whose words are drawn at a time: the generator returns eight bytes per count


@dataclass(frozen=True)
class Scenes:
    """Images as grids of bags of words, with the part that each region shows.

    Parameters
    ----------
    X : uint16 array (n, 32, 32, n_words)
        How often each word was seen in each region.
    y : str array (n,)
        Names of the classes.
    regions : int8 array (n, 32, 32)
        The true part of each region, a number into ``parts``.
    parts : tuple of str
    words : float array (n_parts, n_words)
        Probabilities of the words of each part.
    """

    X: np.ndarray
    y: np.ndarray
    regions: np.ndarray
    parts: tuple[str, ...]
    words: np.ndarray

    def __len__(self) -> int:
        return len(self.X)


def scenes(n_per_class: int = 200, random_state: int | np.random.Generator | None = None) -> Scenes:
    """The synthetic scenes of Naderi Parizi (2016), section 2.6.3: seven classes told apart by ever finer properties.

    Each image is a grid of 32 × 32 regions, each region shows one of eight parts, and 1000 words are drawn from the
    distribution of the part. A part's distribution has a slight peak at a word of its own and is uniform otherwise;
    that of *sand* is the mean of those of *rock* and *vegetation*.

    - *beach*: sky above a straight horizon, sea below it, sand below a curved shoreline.
    - *noise*: the regions of a beach in random order. The distribution of part frequencies is the same.
    - *shore*: a beach whose land is rock in one half of the images, vegetation in the other.
    - *desert1*: sky above sandhills, with a rectangular moon anywhere in the sky.
    - *desert2*: stars instead of the moon, as many as it has regions, each where some region of a moon might be.
    - *field*: sky above vegetation, on which two horses and two persons stand apart.
    - *riding*: the persons sit on the horses. Sizes and places of horses, and those of persons, are distributed as in
      *field*; only the two together differ.

    Bags of words confuse {noise, beach, shore}, {desert1, desert2} and {field, riding}. Bags by region tell noise, and
    confuse the other pairs. Parts tell beach from shore; parts that like equal neighbours tell the deserts; parts that
    know what is above what tell them all.

    Parameters
    ----------
    n_per_class : int
        Images of each class.
    random_state : int, Generator or None
        Images come in random order, so that any stretch of them is a fair sample. They and their order depend on this
        alone.

    Returns
    -------
    Scenes

    Examples
    --------
    >>> from maxmargin.data.synthetic import scenes
    >>> data = scenes(2, random_state=0)
    >>> data.X.shape, sorted(set(data.y.tolist()))
    ((14, 32, 32, 12), ['beach', 'desert1', 'desert2', 'field', 'noise', 'riding', 'shore'])
    >>> top = data.regions[data.y == "beach"][0, 0]
    >>> {data.parts[part] for part in top}
    {'sky'}
    """
    n_per_class = whole("n_per_class", n_per_class)
    rng = np.random.default_rng(random_state)
    layouts = [layout(rng) for layout in LAYOUTS.values() for _ in range(n_per_class)]
    order = rng.permutation(len(layouts))
    regions = np.array(layouts, np.int8)[order]
    y = np.repeat(list(LAYOUTS), n_per_class)[order]
    words = np.full((len(PARTS), N_WORDS), (1.0 - PEAK) / N_WORDS)
    words[np.arange(len(PARTS)), np.arange(len(PARTS))] += PEAK
    words[SAND] = (words[VEGETATION] + words[ROCK]) / 2
    X = np.empty((*regions.shape, N_WORDS), np.uint16)
    for start in range(0, len(regions), _CHUNK):
        piece = slice(start, start + _CHUNK)
        X[piece] = rng.multinomial(WORDS_PER_REGION, words[regions[piece]])
    return Scenes(X, y, regions, PARTS, words)


def _beach(rng: np.random.Generator, land: int = SAND) -> np.ndarray:
    horizon = int(rng.integers(8, 19))
    shoreline = _curve(rng, lowest=horizon + 8, highest=27, swing=3)
    row = np.arange(SIDE)[:, None]
    return np.where(row <= horizon, SKY, np.where(row <= shoreline, SEA, land))


def _noise(rng: np.random.Generator) -> np.ndarray:
    # A shuffled beach, rather than parts drawn one by one: otherwise the frequencies would vary less from image to
    # image than those of beaches do, and a bag of words could see that.
    return rng.permutation(_beach(rng).ravel()).reshape(SIDE, SIDE)


def _shore(rng: np.random.Generator) -> np.ndarray:
    return _beach(rng, land=int(rng.choice([ROCK, VEGETATION])))


def _desert_with_moon(rng: np.random.Generator) -> np.ndarray:
    regions = _dunes(rng)
    top, left = rng.choice(_moon_places(regions))
    regions[top : top + MOON[0], left : left + MOON[1]] = STAR
    return regions


def _desert_with_stars(rng: np.random.Generator) -> np.ndarray:
    # Each star is a random region of a random moon: a moon covers the border of the sky less often than its middle,
    # and stars spread evenly would give themselves away there.
    regions = _dunes(rng)
    places = _moon_places(regions)
    wanted = MOON[0] * MOON[1]
    while wanted:
        top, left = rng.choice(places)
        star = top + rng.integers(MOON[0]), left + rng.integers(MOON[1])
        wanted -= regions[star] != STAR
        regions[star] = STAR
    return regions


def _dunes(rng: np.random.Generator) -> np.ndarray:
    return np.where(np.arange(SIDE)[:, None] <= _curve(rng, lowest=11, highest=22, swing=4), SKY, SAND)


def _moon_places(regions: np.ndarray) -> np.ndarray:
    """Upper left corners of the moons that lie in the sky, (n, 2)."""
    windows = np.lib.stride_tricks.sliding_window_view(regions == SKY, MOON)
    return np.argwhere(windows.all(axis=(2, 3)))


def _meadow(rng: np.random.Generator, persons_of: tuple[int, int]) -> np.ndarray:
    # Both classes place four riders that do not overlap. Riding shows the first two; field shows the horses of the
    # first two and the persons of the others. So horses alone, and persons alone, are distributed alike in both, and
    # in the field no person ends up on a horse.
    horizon = int(rng.integers(6, 15))
    regions = np.full((SIDE, SIDE), VEGETATION)
    regions[: horizon + 1] = SKY
    riders = _riders(rng, horizon + 1)
    for horse, _ in riders[:2]:
        regions[horse] = HORSE
    for number in persons_of:
        regions[riders[number][1]] = PERSON
    return regions


def _riders(rng: np.random.Generator, first_row: int, number: int = 4) -> list[tuple[Any, Any]]:
    """Horses and persons on the rows from ``first_row`` on, none of which touches another's rectangle."""
    while True:  # places that leave no room for the next one are all given up: the order of riders must not matter
        taken = np.zeros((SIDE, SIDE), bool)
        riders = []
        for _ in range(number):
            horse_rows, horse_columns = rng.integers(2, 5), rng.integers(4, 8)
            person_rows, person_columns = rng.integers(2, 5), rng.integers(2, 4)
            height = person_rows + horse_rows
            top = rng.integers(first_row, SIDE - height + 1)
            left = rng.integers(SIDE - horse_columns + 1)
            seat = left + rng.integers(horse_columns - person_columns + 1)
            box = slice(top, top + height), slice(left, left + horse_columns)
            if taken[box].any():
                break
            taken[box] = True
            horse = slice(top + person_rows, top + height), box[1]
            person = slice(top, top + person_rows), slice(seat, seat + person_columns)
            riders.append((horse, person))
        if len(riders) == number:
            return riders


def _curve(rng: np.random.Generator, lowest: int, highest: int, swing: int) -> np.ndarray:
    """A wave: one row per column, around a level from ``lowest`` to ``highest``, at most ``swing`` rows off it."""
    level = rng.uniform(lowest, highest)
    waves = rng.uniform(0.5, 1.5)
    angle = 2 * np.pi * (waves * np.arange(SIDE) / SIDE + rng.uniform())
    return np.rint(level + rng.uniform(1, swing) * np.sin(angle)).astype(int)


LAYOUTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "noise": _noise,
    "beach": _beach,
    "shore": _shore,
    "desert1": _desert_with_moon,
    "desert2": _desert_with_stars,
    "field": partial(_meadow, persons_of=(2, 3)),
    "riding": partial(_meadow, persons_of=(0, 1)),
}
