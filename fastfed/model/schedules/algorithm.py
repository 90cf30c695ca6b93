"""The base of algorithms that decide in rounds: a user's own, and those that are built in.

Between two rounds the clients pull; at a round they send, and everybody decides. Such an algorithm
needs the walks at its rounds only, and a walk can be looked up at any step. So its trials are
exact, nothing is skipped, and they run on the walks of all other schedules of the same trial.

An algorithm is one function, `Algorithm.decide`, of what is `Seen` at a round. It writes into an
`Answer`: how often each arm of each client shall have been pulled by the next round, which of the
new means are sent, and what is declared. `fastfed.simulation.algorithms` compiles and runs it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from fastfed.confidence import BETTING, OWN, Confidence, exponent
from fastfed.errors import InputError
from fastfed.model.part_options import Option
from fastfed.model.schedules.base import Schedule

if TYPE_CHECKING:
    from fastfed.model.instance import Instance
    from fastfed.model.setting import Setting

UNDECIDED = -1
"""In place of a declared arm: no declaration yet."""
ABANDONED = -2
"""In place of a declared arm: the client, or the server, ends without an answer."""
_MOST = 1e15  # of every option


class RadiusNumbers(NamedTuple):
    """A confidence radius as numbers, for `alpha`."""

    kind: int
    walks: float
    sigma: float
    factor: float  # 1 per pair, 2 per arm
    constant: float
    shift: float

    @classmethod
    def of(cls, confidence: Confidence) -> RadiusNumbers:
        """Take the numbers of a built-in radius; a user's own radius has none."""
        return cls(
            confidence.kind,
            float(confidence.walks),
            confidence.sigma,
            1.0 if confidence.pairs else 2.0,
            confidence.constant,
            confidence.shift,
        )


def alpha(radius: Any, n: float) -> float:
    """Return the confidence radius of a mean after n pulls: per arm, or half of a pair's.

    Parameters
    ----------
    radius
        ``seen.local_radius`` (of an arm's mean at a client) or ``seen.global_radius`` (of the
        server's mean of an arm that every client has pulled n times; if clients lack arms, of the
        arm with the most clients).
    n
        The number of pulls, at least 1.

    Returns
    -------
    float
        alpha(n). An arm is worse than another if its mean is 2 alpha(n) behind.

    Examples
    --------
    >>> import fastfed as ff
    >>> class Knows(ff.Algorithm):
    ...     family = "knows-its-radius"
    ...
    ...     @staticmethod
    ...     def decide(seen, answer):
    ...         answer.targets[:] = 100
    ...         if seen.round and ff.alpha(seen.local_radius, 100) > 0.1:
    ...             answer.local_arms[:] = answer.global_arm[:] = 0
    >>> ff.simulate([[0.9], [0.1]], Knows(), delta=0.1, trials=3).frame["pulls"].to_list()
    [200, 200, 200]
    """
    if radius.kind == OWN or radius.kind == BETTING:
        return math.nan
    spread = exponent(radius.kind, n, radius.constant, radius.shift)
    found: float = radius.sigma * math.sqrt(radius.factor * spread / (radius.walks * n))
    return found


def server_weights(instance: Instance) -> npt.NDArray[np.float64]:
    """Return the weight of each client in the server's value of each arm, (K, M)."""
    return np.array(instance.questions.shares[0])


class Seen(NamedTuple):
    """All that an algorithm knows at a round. The arrays cannot be written, except ``memory``."""

    round: int
    """0 before the first pull, then 1, 2, ..."""
    counts: npt.NDArray[np.int64]
    """(K, M): pulls of each arm at each client so far."""
    sums: npt.NDArray[np.float64]
    """(K, M): the sums of their rewards, as the clients know them."""
    received_counts: npt.NDArray[np.int64]
    """(K, M): the counts as of the last time that the mean was sent: all that the server knows."""
    received_sums: npt.NDArray[np.float64]
    """(K, M): the sums as of that time."""
    delta: float
    """The allowed error probability."""
    sigma: float
    """The confidence scale: rewards are sigma-sub-Gaussian."""
    weights: npt.NDArray[np.float64]
    """(M,): the weights of clients, with sum 1."""
    arm_weights: npt.NDArray[np.float64]
    """(K, M): the server's value of an arm is the sum over clients of weight times mean. Equal to
    ``weights`` in each row if all clients have all arms; 0 where a client lacks the arm."""
    available: npt.NDArray[np.bool_]
    """(K, M): whether a client has an arm. An arm is never pulled where it is not."""
    local_radius: Any
    """The chosen radius at a client: see `alpha`."""
    global_radius: Any
    """The chosen radius at the server."""
    limit: int
    """The largest number of pulls of an arm at a client."""
    options: Any
    """The parameters of the algorithm, by name."""
    prepared: Any
    """The return value of `Algorithm.prepare`."""
    memory: npt.NDArray[np.float64]
    """Numbers of the algorithm's own, kept from round to round; zeros at round 0."""
    uniforms: npt.NDArray[np.float64]
    """(K, M): independent uniforms in [-1/2, 1/2] of this round, if the algorithm is
    ``randomised``."""


class Given(NamedTuple):
    """The part of `Seen` that all rounds of all trials share, under the same names."""

    delta: float
    sigma: float
    weights: Any
    arm_weights: Any
    available: Any
    local_radius: Any
    global_radius: Any
    limit: Any
    options: Any
    prepared: Any


class Answer(NamedTuple):
    """The decisions at a round, to be written in place."""

    targets: npt.NDArray[np.int64]
    """(K, M): pulls that each arm shall have at the next round. Preset to the present counts."""
    sent: npt.NDArray[np.bool_]
    """(K, M): whether a client sends the arm's mean at the next round, if it is pulled until then.
    Preset to True."""
    local_arms: npt.NDArray[np.int64]
    """(M,): the arms that the clients declare, which is final. Preset to those declared before,
    and -1."""
    global_arm: npt.NDArray[np.int64]
    """(1,): the arm that the server declares, likewise."""


class Algorithm(Schedule):
    """An algorithm that decides in rounds: subclass it, or decorate a function with `define`.

    A subclass has a name (``family``) and a function ``decide(seen, answer)``, a static method
    that Numba can compile. It may have parameters, which come after a colon in its name, and two
    functions that are not compiled: `prepare` and `memory`.

    A trial ends at the round at which the server and every client have declared.

    Examples
    --------
    >>> import fastfed as ff
    >>> class Coin(ff.Algorithm):
    ...     family = "first-arm"
    ...
    ...     @staticmethod
    ...     def decide(seen, answer):
    ...         if seen.round == 0:
    ...             answer.targets[:] = 1
    ...         else:
    ...             answer.local_arms[:] = 0
    ...             answer.global_arm[0] = 0
    >>> done = ff.simulate([[0.9], [0.1]], ["fedelim", Coin()], delta=0.1, trials=10)
    >>> done.frame["pulls"][10:].to_list() == [2] * 10
    True
    """

    parameters: ClassVar[dict[str, float | None]] = {}
    """Names of the parameters with their defaults; None: must be given. All are numbers."""
    knows_means: ClassVar[bool] = False
    """Whether `prepare` looks at the true means, as no real algorithm can."""
    randomised: ClassVar[bool] = False
    """Whether `decide` reads ``seen.uniforms``."""
    chosen = True
    eliminates = False
    _options: ClassVar[Any] = None

    def __init_subclass__(cls, **options: Any) -> None:
        if "declared_options" in cls.__dict__:
            cls.parameters = {name: one.default for name, one in cls.declared_options.items()}
        else:
            cls.declared_options = {
                name: Option(name.upper(), -_MOST, _MOST, default=default)
                for name, default in cls.parameters.items()
            }
        # one class of options for all objects of the family: Numba compiles for the class
        make: Any = namedtuple
        made = make("Options", list(cls.parameters), module=cls.__module__)
        # another process finds the class by this name, in compiled code on disk
        made.__qualname__ = f"{cls.__qualname__}._options"
        cls._options = made if cls.parameters else None
        super().__init_subclass__(**options)

    def __init__(self, *values: float, **named: float) -> None:
        names = list(self.parameters)
        given = {**dict(zip(names, values, strict=False)), **named}
        unknown = [one for one in named if one not in self.parameters]
        if unknown or len(values) > len(names):
            raise InputError(
                f"schedule {self.family}: takes {', '.join(names) or 'no parameters'}, not "
                + (", ".join(unknown) or f"{len(values)} values")
            )
        found = {
            name: one.read(f"schedule {self.family}", given.get(name, one.default), self.example)
            for name, one in self.declared_options.items()
        }
        self.options: Any = self._options(**found) if self._options else ()
        self.check_options()

    @staticmethod
    @abstractmethod
    def decide(seen: Seen, answer: Answer) -> None:
        """Decide at a round. Compiled, unless ``engine="python"``.

        Parameters
        ----------
        seen
            All that is known.
        answer
            The decisions, to be written in place.
        """

    def prepare(self, setting: Setting) -> Any:
        """Compute, once for all trials of a setting, what ``seen.prepared`` holds.

        Parameters
        ----------
        setting
            The instance (``setting.instance``), delta, sigma, radii, goal.

        Returns
        -------
        numpy.ndarray or NamedTuple
            Anything that Numba knows as an argument.
        """
        return ()

    def kernel(self, setting: Setting) -> Given:
        return Given(
            setting.delta,
            setting.sigma,
            read_only(np.array(setting.instance.questions.rows[0])),
            read_only(server_weights(setting.instance)),
            read_only(np.array(setting.instance.available)),
            RadiusNumbers.of(setting.radii.client),
            RadiusNumbers.of(setting.radii.server),
            np.int64(setting.last_step),
            self.options,
            read_only(self.prepare(setting)),
        )

    def memory(self, arms: int, clients: int) -> int:
        """Return the length of ``seen.memory``.

        Parameters
        ----------
        arms, clients
            K and M.

        Returns
        -------
        int
        """
        return 0

    @classmethod
    def define(
        cls, family: str, *, memory: int = 0, **parameters: float
    ) -> Callable[[Callable[[Seen, Answer], None]], type[Algorithm]]:
        """Make an algorithm of a function ``decide(seen, answer)``, as a decorator.

        Parameters
        ----------
        family
            The name.
        memory
            The length of ``seen.memory``.
        **parameters
            Names of the parameters with their defaults.

        Returns
        -------
        Callable
            A decorator that returns a subclass of `Algorithm`.
        """

        def make(decide: Callable[[Seen, Answer], None]) -> type[Algorithm]:
            body = {
                "family": family,
                "parameters": parameters,
                "decide": staticmethod(decide),
                "memory": lambda self, arms, clients: memory,
                "__doc__": decide.__doc__,
                "__module__": decide.__module__,
                "__qualname__": decide.__qualname__,
            }
            return cast("type[Algorithm]", type(decide.__name__, (cls,), body))

        return make

    @property
    def option_values(self) -> tuple[float, ...]:
        return tuple(self.options)

    @property
    def label(self) -> str:
        return self.name + (" (knows the means)" if self.knows_means else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), tuple(self.options), self.code_fingerprint())

    def times(self, until: int) -> npt.NDArray[np.int64]:
        raise InputError(f"{self} has no list of times: it chooses its rounds in each trial")

    def refuse(self, setting: Setting) -> None:
        """Raise an `InputError` if the algorithm cannot answer the question of a setting."""
        if not setting.goal.one_arm:
            raise InputError(
                f"algorithm {self}: declares one arm, and goal {setting.goal} asks for a set; "
                "use the goal best or eps:E"
            )
        questions = setting.instance.questions
        if len(questions) > 1 or not questions.local:
            raise InputError(
                f"algorithm {self}: answers one question of the server and one of each client, and "
                f"{setting.instance.name} asks others; give one row of weights, with local answers"
            )
        if str(setting.uplink) != "exact":
            raise InputError(
                f"algorithm {self}: reads exact means, and uplink {setting.uplink} sends others; "
                "use the uplink exact"
            )
        if setting.participation.at_random:
            raise InputError(
                f"algorithm {self}: reads the means of all clients, and participation "
                f"{setting.participation} loses some; use participation full"
            )
        if setting.radii.client.kind == BETTING and self.built_in():
            raise InputError(
                f"algorithm {self}: reads a radius alpha(n), and {setting.radius} has none; use "
                "mixture-pairs"
            )
        if setting.radii.client.kind == OWN:
            raise InputError(
                f"algorithm {self}: reads a radius as numbers, and {setting.radius} is a function; "
                "use a built-in radius"
            )


def _restored(family: type[Algorithm], options: tuple[float, ...], code: str | None) -> Algorithm:
    """Make an algorithm of another process anew; refuse other code under its name."""
    made = family(*options)
    if family.code_fingerprint() != code:
        raise InputError(
            f"algorithm {made}: this process has other code for it than the one that sent it; give "
            "all workers the same version of its package, and the same Python"
        )
    return made


def read_only(found: Any) -> Any:
    """Return arrays, or a NamedTuple of arrays, that an algorithm cannot write to in a round."""
    if isinstance(found, np.ndarray):
        view = np.ascontiguousarray(found).view()
        view.setflags(write=False)
        return view
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*map(read_only, found))
    return found
