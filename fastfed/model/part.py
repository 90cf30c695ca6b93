"""Parts of a run: rewards, schedule, radius, goal and uplink, all by one protocol.

A *kind* of part is a base class (`Goal`), a *family* one of its subclasses (`Top`), and a part an
object of a family (`Top(3)`). A family is known by name as soon as its class is defined, and the
name of a part ("top:3") is its family and, after a colon, its options. Rows, summaries and files
carry names; everything else carries the objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fastfed.errors import InputError, UnknownNameError, nearest
from fastfed.model import installed
from fastfed.model.fingerprint import fingerprint
from fastfed.model.part_options import Option, declared, grammar_of
from fastfed.validation import shown

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


class Part(ABC):
    """One of the things that a user chooses, by name or as an object.

    A subclass that says its ``kind`` is the base of a new kind. A subclass of such a base that
    says its ``family`` is registered under that name, and is then known wherever a name is taken.
    """

    kind: ClassVar[str]
    """The column and the option that name the part, as in "goal"."""
    plural: ClassVar[str]
    """The option that names several; by default the kind with an s."""
    family: ClassVar[str]
    """The name up to the colon, as in "top"."""
    declared_options: ClassVar[dict[str, Option]] = {}
    """Options by the names of their attributes: those that the fields of the class declare."""
    grammar: ClassVar[str]
    """The form of the name, as in "top:N", or "mixture[:N]" if the option may be left out; empty
    if no name makes such a part. By default it follows from the options."""
    example: ClassVar[str] = ""
    """A name of the family with options, as in "top:3"; by default the grammar."""
    covered: ClassVar[bool] = False
    """Whether the theorems of `fastfed.theory` cover runs with the family. It is not inherited: a
    new family is not covered until its class says so."""
    rank: ClassVar[int] = 100
    """Place of the family in lists and tables; families of one rank stand as they were defined."""
    families: ClassVar[dict[str, type[Any]]]
    """Families of the kind by name, in order of rank."""

    repeats: ClassVar[bool] = True
    """Whether a part that is given twice counts once, and is not refused."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls
            cls.families = {}
            if "plural" not in cls.__dict__:
                cls.plural = f"{cls.kind}s"
        else:
            if "declared_options" not in cls.__dict__:
                inherited = {} if "__init__" in cls.__dict__ else cls.declared_options
                cls.declared_options = {**inherited, **declared(cls.__dict__)}
            if "family" in cls.__dict__:
                _register(cls)

    def __post_init__(self) -> None:
        """Check the options, which are the fields of a dataclass."""
        for name, one in self.declared_options.items():
            value = one.read(f"{self.kind} {self.family}", getattr(self, name), self.example)
            object.__setattr__(self, name, value)
        self.check_options()

    def check_options(self) -> None:  # noqa: B027 - most options suit each other
        """Raise an `InputError` if the values of the options do not suit each other.

        Returns
        -------
        None
        """

    @cached_property
    def name(self) -> str:
        """Canonical name, which `parse` reads back: up to the last option without its default."""
        values = list(self.option_values)
        defaults = [one.default for one in self.declared_options.values()]
        while values and values[-1] == defaults[len(values) - 1]:
            del values[-1]
        return f"{self.family}:{','.join(map(plain, values))}" if values else self.family

    @property
    def option_values(self) -> Sequence[float]:
        """The values of the options, in the order of names."""
        return [getattr(self, name) for name in self.declared_options]

    @property
    def key(self) -> object:
        """Value by which parts are compared: the name, if it determines the part."""
        return self.name

    def refuse(self, setting: Setting) -> None:  # noqa: B027 - most parts refuse nothing
        """Refuse other parts of a setting, or an instance, that this part does not go with.

        It is the one place where parts refuse each other. By default nothing is refused.

        Parameters
        ----------
        setting
            The setting.

        Returns
        -------
        None
            It raises `InputError` to refuse.
        """

    def no_theorem(self) -> str | None:
        """Return the reason why no theorem covers the part, or None if one does.

        Returns
        -------
        str or None
            One line.
        """
        if type(self).__dict__.get("covered"):
            return None
        return f"no theorem covers {self.kind} {self}"

    @abstractmethod
    def kernel(self, setting: Setting) -> Any:
        """Make the form of the part in a setting that compiled code takes: NamedTuples of numbers.

        It is the only way from the model to `fastfed.kernels`.

        Parameters
        ----------
        setting
            The setting, with the instance, delta, radii and limits.

        Returns
        -------
        NamedTuple
            The numbers, of a class that selects the compiled code.
        """

    @classmethod
    def built_in(cls) -> bool:
        """Tell whether the family is defined in fastfed itself, and so known to every worker."""
        return cls.__module__.partition(".")[0] == "fastfed"

    @classmethod
    def known_to_workers(cls) -> bool:
        """Tell whether a worker with the same packages knows the family: see `installed`."""
        return cls.built_in() or cls.__module__.partition(".")[0] in installed.packages()

    @classmethod
    def code_fingerprint(cls) -> str | None:
        """Return a hash of the code of a family of a user's own; None for built-in families."""
        return None if cls.built_in() else fingerprint(cls)

    @classmethod
    def from_options(cls, options: str) -> Self:
        """Make the part of this family whose name has ``options`` after the colon."""
        if not cls.declared_options:
            return cls(options)  # type: ignore[call-arg]
        values, labels = options.split(","), [one.label for one in cls.declared_options.values()]
        if len(values) > len(labels):
            raise InputError(
                f"{cls.kind} {shown(f'{cls.family}:{options}')}: takes {', '.join(labels)}, and "
                f"nothing else, as in {cls.example}"
            )
        return cls(*values)

    @classmethod
    def parse(cls, given: object) -> Self:
        """Make the part of this kind that a name stands for; return an object as it is."""
        if isinstance(given, cls):
            _refuse_nameless(given)
            return given
        name, colon, options = (given if isinstance(given, str) else "").strip().partition(":")
        if name not in cls.families:
            installed.load()
        family = cls.families.get(name)
        if family is None or not family.grammar:
            named = [one.family for one in cls.families.values() if one.grammar]
            raise UnknownNameError(
                f"{cls.kind} {shown(given)}{nearest(name, named)}: must be one of {cls.known()}"
            )
        if ":" not in family.grammar and colon:
            raise InputError(f"{cls.kind} {shown(given)}: {name} takes no option; write {name}")
        if colon and (options.strip() or "[:" in family.grammar):
            return family.from_options(options)  # type: ignore[no-any-return]
        if ":" in family.grammar and "[:" not in family.grammar:
            labels = [one.label for one in family.declared_options.values() if one.default is None]
            lacks = f"{labels[0]} is missing; write" if labels else "needs a value, as in"
            raise InputError(f"{cls.kind} {shown(given)}: {lacks} {family.example}")
        return family()  # type: ignore[no-any-return]

    @classmethod
    def parse_all(cls, given: object) -> list[Self]:
        """Make one part or several, each once, in the order given."""
        if isinstance(given, str | Part) or not isinstance(given, Iterable):
            given = [given]
        every = list(map(cls.parse, given))
        found = list(dict.fromkeys(every))
        if not cls.repeats and len(found) < len(every):
            twice = next(one for place, one in enumerate(every) if one in every[:place])
            raise InputError(f"{cls.kind} {twice} is given twice")
        if not found:
            first = next(iter(cls.families))
            raise InputError(f"no {cls.plural}: give at least one, as in {first}")
        return found

    @classmethod
    def known(cls) -> str:
        """List the names of the kind, for messages."""
        return ", ".join(one.grammar for one in cls.families.values() if one.grammar)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.kind.capitalize()} {self.name}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        # by class: one that is defined again under its name, as in a notebook, is another
        return type(self) is type(other) and self.key == other.key

    def __hash__(self) -> int:
        return hash((self.kind, self.key))


KINDS: dict[str, type[Part]] = {}
"""Base classes of the kinds, as `Goal` for "goal"."""


def _register(cls: type[Part]) -> None:
    """Register a family under its name.

    A class that is defined again, as in a notebook, replaces itself. The name of another class is
    refused.
    """
    base = KINDS[cls.kind]
    name = cls.family
    if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set(":, "):
        raise InputError(
            f"family {shown(name)} of {cls.__qualname__}: must be printable text without colons, "
            "commas and blanks"
        )
    if "grammar" not in cls.__dict__:
        cls.grammar = grammar_of(name, cls.declared_options)
    if "example" not in cls.__dict__:
        cls.example = cls.grammar
    other = base.families.get(name)
    if other is not None and _home(other) != _home(cls):
        raise InputError(
            f"{cls.kind} family {name!r} of {_home(cls)}: taken by {_home(other)}; choose another"
        )
    every = {**base.families, name: cls}
    base.families = dict(sorted(every.items(), key=lambda item: item[1].rank))


def _refuse_nameless(part: Part) -> None:
    """Refuse an object whose class inherits the name of another family, or has none."""
    family = getattr(type(part), "family", None)
    if family is None:
        named = hasattr(part, "name")
    else:
        named = _home(part.families[family]) == _home(type(part))
    if not named:
        raise InputError(
            f"{part.kind} of class {_home(type(part))}: the class has no name of its own; give it "
            "one, as in family = 'mine'"
        )


def _home(cls: type[Part]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def plain(number: float) -> str:
    """Write a number in a name: as short as it can be and be read back, without ".0"."""
    return repr(number).removesuffix(".0")
