"""The contracts between the parts. Users and contributors implement these; nobody subclasses them.

Data walks one way: a *model* turns examples and labels into *constraints*, a *solver* finds the dual
variables of the constraints under a *regularizer*, ``solve`` stops it by the duality gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .validation import is_seekable as is_seekable, is_source as is_source  # noqa: PLC0414  # users ask for them here

if TYPE_CHECKING:
    from .kernels.losses import LossShape
    from .problem import Problem, Rivals, TotalLoss, Totals
    from .regularizers.shape import Shape

Seed = int | np.random.Generator | np.random.RandomState | None


@dataclass(frozen=True)
class Chunk:
    """Some examples of a source, next to each other in it.

    ``ids`` are their positions in the source. ``x`` is a matrix, dense or CSR, with one row per example, or a list of
    inputs of structured examples. ``group`` says which rows of a ranking problem are compared, ``weight`` how much
    each example counts; None where the source has no such column.
    """

    ids: np.ndarray
    x: Any
    y: Any
    group: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return self.ids.size


class Source(Protocol):
    """Data, in memory or not, that can be read again and again, from its beginning to its end.

    ``len(source)`` is the number of examples; ``maxmargin.checks.check_source`` tests a source. Optional:

    - ``fingerprint``: see ``Seekable``; else a source is known by its length and its first chunk.
    - ``origin``: a dictionary, how to read more of the same data; fitted estimators keep it as ``origin_``.
    - ``keep_within(memory)``: read no further ahead than so many bytes allow, from now on.
    - ``skipped``, ``n_skipped``: what the last pass could not use: a few lines of text, and how many rows.
    """

    @property
    def n_features(self) -> int | None:
        """Columns of ``x``; None where inputs are no rows of a matrix."""

    def __len__(self) -> int:
        """The number of examples."""

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        """All chunks; or those whose numbers ``order`` gives, which only a ``Seekable`` source can be asked for.

        The next chunk is made ready in the background while the last one is in use, and a chunk's memory is given
        back when the next one is taken: copy what is to stay.
        """


class Seekable(Source, Protocol):
    """A source whose chunks can be read in any order: arrays, memory maps, shards.

    Optional, for a source that would take all of its data along to another process: ``only(a, b)``, a source of its
    chunks a … b − 1.
    """

    @property
    def offsets(self) -> np.ndarray:
        """Where each chunk begins, and the number of examples: chunk i holds ``offsets[i]`` … ``offsets[i+1] − 1``."""

    @property
    def fingerprint(self) -> str:
        """A short text that changes when the data does, found without reading all of it."""

    def chunk(self, i: int) -> Chunk:
        """Chunk i, without a copy where that is possible."""

    def labels(self, i: int) -> Chunk:
        """Chunk i without its inputs (``x`` is None), which are not read."""

    def nbytes(self, i: int) -> int:
        """Bytes of chunk i in memory."""

    def release(self, i: int) -> None:
        """The memory of chunk i is not needed for now: nothing of it is in use any more."""


class Model(Protocol):
    """All that a user writes for a new kind of output.

    Optional, used where present:

    - ``exact = False``: ``most_violated`` and ``predict`` are approximate; certificates then claim no upper bound.
    - ``rescaling = "slack"``: ``most_violated`` maximises loss·(1 − w·(φ(x, y) − φ(x, ŷ))).
    - ``sized(X, Y)``: a copy that knows its sizes from the data.
    - ``joined(models)``: the model that knows its own sizes and theirs, where each was sized on a part of the data.
    - ``oracle(X, Y)``: an ``Oracle``, a compiled search over whole data sets.
    - ``predict_all(X, w)``: many predictions at once.
    - ``called``: what these methods are called where the model comes from, for messages.
    """

    @property
    def n_weights(self) -> int: ...

    def features(self, x: Any, y: Any) -> Any:
        """The joint feature vector φ(x, y), dense or sparse."""

    def loss(self, y: Any, y_hat: Any) -> float:
        """How bad it is to answer ``y_hat`` where ``y`` is true; zero for ``y`` itself."""

    def predict(self, x: Any, w: np.ndarray) -> Any:
        """argmax over y of w·φ(x, y)."""

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> Any:
        """argmax over ŷ of loss(y, ŷ) + w·φ(x, ŷ)."""


class Oracle(Protocol):
    """A model bound to data: finds the answers that violate the margin most.

    Optional, where examples of a stream are gone: ``live``, those that can still be searched.

    Optional: ``relaxed``, whether rivals may be other than answers of the model, so that the lower bound is one of a
    relaxed problem.

    Optional, where searches are approximate: ``refined(ids, w, seconds)``, as ``rivals`` with so much time for exact
    ones.

    Optional, for data of which only a part is in memory at a time (``constraints.sourced``):

    - ``visits(rng)``: all examples in the order in which they are best asked about, one part after the other.
    - ``offsets``: where each part begins, and the number of examples.
    - ``in_view(ids)``: whether these examples are in memory; only about those may several threads ask at once.
    - ``part(ids)``: some of those, with their model, to be searched by another process.

    Optional, for examples that are searched elsewhere (``distributed.oracles``):

    - ``submit(ids, w)``: an object whose ``result()`` is what ``rivals`` gives; does not wait. ``n_ahead``: how many
      such may be under way.
    - ``chunked(ids, size)``: these examples in chunks that are best asked about one after another; ``at_once(ids)``: in
      few chunks, for searches at the same weights.
    - ``evaluate(w, budget)``: the loss of all examples; ``sums(alpha)``: v and Σ l α of dual variables.
    """

    n_examples: int
    n_weights: int
    releases_gil: bool
    """Whether several threads may search at once and gain by it; otherwise processes are used."""

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        """For each of these examples the answer that maximises loss + w·φ(x, ŷ)."""

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        """Rows and losses of given answers to these examples."""


class OracleError(Exception):
    """A model raised an error, or contradicted itself, while an answer was searched for.

    ``example`` is the position of the example; once ``solve`` has passed the error on, ``solution`` holds all that
    was reached before.
    """

    def __init__(self, message: str, example: int) -> None:
        super().__init__(message)
        self.example = example
        self.solution: Any = None

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.example)  # errors of worker processes travel as pickles


class LatentModel(Model, Protocol):
    """A model whose answers are pairs (y, z). Only y is ever given: z, the latent value, is chosen while learning.

    ``features(x, answer)`` takes such a pair, ``predict`` and ``most_violated`` give one, and ``loss(y, answer)`` is
    zero where ŷ is y, whatever ẑ. Optional, used where present:

    - ``exact``, ``sized``, ``joined``, ``predict_all``, ``called``: as for ``Model``.
    - ``latent_scores(x, y, w)``: w·φ(x, y, z) for every z there is, where these can be listed. A latent value is then
      its number in that list.
    - ``propose(x, y, z, w, rng)``: one small change of z where they cannot; as likely as the change back.
    - ``initial(x, y)``: the latent value to start from; or ``initial_all(X, Y)``, those of all examples together.
    - ``groups``: lists of weights, one for each state that the group norm may drop; ``states``: their names.
    - ``regularizer``: the one that its weights need (bounds on some of them, say), where the user gives none.
    - ``latent_oracle(X, Y)``: a ``LatentOracle``, compiled for whole data sets.
    - ``latent_objective(X, Y, budget, regularizer)``: a ``LatentObjective``, where bounds fix something else than
      latent values of the truth. The methods above may then be left out.
    """

    def complete(self, x: Any, y: Any, w: np.ndarray) -> Any:
        """argmax over z of w·φ(x, y, z)."""


class LatentOracle(Protocol):
    """A latent model bound to data.

    Latent values of all examples stand in a sequence: an int array where they can be listed, else a list. Optional:
    ``exact = False`` where ``complete`` is approximate; ``exact_at(w)`` where that depends on the weights.
    """

    n_examples: int
    n_weights: int

    def bound(self, latent: Any) -> Oracle:
        """The search for rivals of the truths (y_i, z_i); answers are pairs."""

    def truths(self, ids: np.ndarray, latent: Any) -> Any:
        """The answers (y_i, z_i) of some examples, as the oracle of a bound takes them; one latent value for each."""

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        """The best latent value of every example, and its score."""

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        """w·φ(x_i, y_i, z) for some examples, one latent value for each."""

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """All scores, one example after the other, and where each begins (n + 1 offsets); None if they are too many."""

    def propose(self, i: int, z: Any, w: np.ndarray, rng: np.random.Generator) -> Any:
        """Another latent value of example i."""

    def initial(self) -> Any:
        """Latent values to start from, or None if the model has no opinion."""


class LatentObjective(Protocol):
    """F(w) = Ω(w) + Σ_i C_i·(loss of example i), not convex, and its convex upper bounds.

    What is fixed makes a bound: one latent value (or policy, …) for each example, in a sequence of length n. Optional,
    where bounds are searched: ``oracle``, the ``LatentOracle``, whose ``truths`` let the cache of one bound serve the
    next, and ``with_oracle(oracle)``, the same objective with examples that are searched elsewhere. ``listable`` says
    whether latent values are numbers, where that is decided by all examples: the objective of some is told.
    """

    n_examples: int
    n_weights: int
    regularizer: Regularizer

    def problem(self, latent: Any, factors: np.ndarray | None = None) -> Problem:
        """The bound with these values fixed. ``factors`` multiply the C_i; zero leaves an example out."""

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """What fixed values are worth at w."""

    def initial(self, rng: np.random.Generator | None) -> Any:
        """Values to start from: the model's own choice, or random ones."""

    def carriers(self, alpha: Any) -> np.ndarray:
        """Which examples have a share in these dual variables of a bound (a mask)."""


class Evaluation(Protocol):
    """An objective at one w: the regret of a fixed value is C_i·(bound − F) of its example, never negative."""

    best: Any
    """The values with regret zero: the bound with these touches F at w."""

    def regrets(self, ids: np.ndarray, latent: Any) -> np.ndarray:
        """Regrets of some examples, one value for each."""

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Regrets of all values, one example after the other, and where each begins; None if they are too many."""

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
        """One small change of the value of example i; as likely as the change back."""


class BoundChooser(Protocol):
    """Which bound comes next: CCCP, G-MM, G-MME. Settings only.

    Optional: ``check(objective)``, which complains before the first bound if the objective cannot give what is needed;
    and ``in_expectation = True`` for choosers that may leave the budget now and then.
    """

    def choose(self, search_state: Any, rng: np.random.Generator) -> Any:
        """Values for all examples; see ``latent.search_state.SearchState``. Asked where the budget is above zero."""


class Constraints(Protocol):
    """What a problem asks of the weights, and what certificates need to know of it.

    What dual variables are (an array, ``Planes``) is known to the constraints alone. What solvers ask besides is in
    ``constraints``: ``Closed`` has compiled steps over dual variables, ``Blocked`` reads such constraints one block
    after another, ``Searched`` has an oracle.

    Optional, used where present by closed ones:

    - ``describe()``: a ``constraints.description.Description``, the few numbers that solvers are chosen by.
    - ``as_slots(of_all)``: ``constraints.slots.InteriorSlots``, the arrays of Newton steps; ``of_all`` describes the
      whole problem.
    - ``n_constraints``: how many there are, to be shown.
    - ``interior_rows(n_threads)``: what answers as ``solvers.interior_rows.InteriorRows`` does, where rows are not at
      hand.
    """

    n_examples: int
    n_weights: int
    closed: bool
    """Whether every constraint is known at once, or searched for."""
    held_in: str
    """Where they are: "memory", "blocks", "oracle", or another row of ``solvers.choose.SOLVERS``."""

    def feasible(self, alpha: Any) -> Any:
        """The nearest feasible point, always a new object."""

    def totals(self, alpha: Any) -> Totals:
        """Σ l α and v = Σ α (truth − rival) of the nearest feasible point, and by how much rounding may have changed
        them."""

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        """Σ_i C_i·(loss of example i), every example at this one w, and by how much it may be underrated."""


class Regularizer(Protocol):
    """A strongly convex Ω, seen through v = Σ α (truth − rival).

    Optional: ``value_error(w)`` and ``conjugate_error(v, error)``, what rounding may have changed in ``value`` and
    ``conjugate`` where these are more than sums of a few products for each weight (``regularizers.shape``).

    One that is not strongly convex says ``pure = True`` and has three methods more, for proximal steps:
    ``around(centre, l2)``, the same Ω with l2/2 ‖w − centre‖² added; ``dual_radius()``, the largest ‖v‖ for which Ω*(v)
    is finite; and ``dual_scale(v)``, the largest s ≤ 1 for which Ω*(s·v) is. It has neither ``weights`` nor ``shape``:
    these complain.
    """

    def value(self, w: np.ndarray) -> float:
        """Ω(w); infinite where w is not allowed."""

    def conjugate(self, v: np.ndarray) -> float:
        """Ω*(v) = max over w of w·v − Ω(w)."""

    def weights(self, v: np.ndarray) -> np.ndarray:
        """∇Ω*(v): the w that attains it."""

    def shape(self, n_weights: int) -> Shape:
        """The same map as arrays for the kernels; complains if it does not fit ``n_weights``."""


class Loss(Protocol):
    """What an example pays, in units of C, for missing its target on a side that costs: convex, and zero at the target.

    ``maxmargin.checks.check_loss`` tests one.
    """

    def value(self, missed: np.ndarray) -> np.ndarray:
        """φ of every entry: of margins that are missed by so much, or of distances from a target."""

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        """φ*(α) = max over all misses m of α·m − φ(m), for every entry; infinite where α cannot be."""

    def shape(self) -> LossShape:
        """The same φ in the numbers that kernels read."""


class Checkpoint(Protocol):
    """A place where runs are saved. What is saved consists of numbers, text, arrays and ``Planes``."""

    def load(self) -> dict[str, Any] | None:
        """What was saved last, if anything was."""

    def due(self) -> bool:
        """Whether it is time to save again."""

    def save(self, content: dict[str, Any]) -> None: ...


class Solver(Protocol):
    """Settings only: data is in the problem, progress in the state.

    Optional: ``save(state, settled)``, a dictionary of all that a run can go on from, and ``restore(problem, saved)``.
    Without them it is the dual variables, and ``start``. Where ``settled`` is False a step was broken off, and None
    says that what was saved before is worth more.

    Optional, for solvers that keep what a search has found:

    - ``relabel(problem, state, ids, rows)``: the state to go on with where the truths of these examples have changed by
      ``rows``, those when the cache began minus the new ones. Searches over bounds have one such solver for all.
    - ``absorb(problem, state, tol)``: the state after the next examples of a stream, which ``partial_fit`` needs.
    """

    def start(self, problem: Problem, warm: Any = None) -> Any:
        """A state, which has what ``solvers.solve.SolverState`` says; from these dual variables, if there are any."""

    def step(self, problem: Problem, state: Any) -> Any:
        """One pass."""
