"""Instances by name and by file: `load` and `save`.

Built-ins are in ``data/``.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError, UncertainWarning, nearest
from fastfed.files import data_folder, replacing, valid_unicode
from fastfed.model.instance import Instance, changed
from fastfed.model.instance_files.csv_files import NUMBER, read_csv, to_csv
from fastfed.model.instance_files.observed_files import from_rewards, read_parquet, to_histogram
from fastfed.model.instance_files.reading import Reading, named
from fastfed.model.instance_files.toml_files import read_toml, to_toml
from fastfed.model.observed import doubtful_gaps
from fastfed.model.rewards import Gaussian, Rewards
from fastfed.model.rewards.finite import ABSENT
from fastfed.validation import MOST_SEED, refuse_many_cells

FAMILIES = {
    "random": "random:K,M,SEED (uniform means)",
    "scaled": "scaled:NAME,FACTOR (another instance's means, multiplied)",
    "gaussian": "gaussian:NAME (another instance's means, with Gaussian rewards)",
}
_MOVIELENS: dict[str, tuple[float | str, str]] = {  # what a genre without ratings is in a country
    "movielens": (0.0, "a genre without ratings pays 0"),
    "movielens-available": (ABSENT, "countries have only the genres that were rated there"),
}


def builtin_names() -> list[str]:
    """List the names that `Instance.load` knows."""
    return sorted([*(path.stem for path in data_folder().glob("*.toml")), *_MOVIELENS])


def known_by_name(name: str) -> bool:
    """Tell whether `load` finds the instance by this name in every process."""
    family, colon, _ = name.partition(":")
    return name in builtin_names() or (family in FAMILIES and bool(colon))


def brought_back_by_name(instance: Instance) -> bool:
    """Tell whether the name of an instance loads it, anywhere: not a file that has such a name."""
    return known_by_name(instance.name) and _by_name(instance.name).digest == instance.digest


def load(
    source: str | Path,
    rewards: Rewards | str | None = None,
    reading: Reading = Reading(),  # noqa: B008
    weights: npt.ArrayLike | None = None,
) -> Instance:
    """Load an instance: see `Instance.load`."""
    if isinstance(source, str) and known_by_name(source):
        _refuse_options(source, rewards, reading)
        loaded = _by_name(source)
    else:
        path = Path(source)
        if path.suffix.lower() not in _READERS:
            known = [*builtin_names(), *(f"{name}:" for name in FAMILIES)]
            raise InputError(
                f"unknown instance {str(source)!r}{nearest(str(source), known)}: a built-in "
                f"({', '.join(builtin_names())}), {', '.join(FAMILIES.values())}, or a file ending "
                f"in {', '.join(_READERS)}"
                + ("; --instance is repeated for several" if "," in str(source) else "")
            )
        loaded = _load_file(path, valid_unicode(path.stem), rewards, reading)
    if weights is None:
        return loaded
    with named(loaded.name):
        return loaded.weighted(weights)


def _refuse_options(source: object, rewards: object, reading: Reading) -> None:
    """Refuse a reward distribution for a source that has one, and options of observed rewards."""
    if reading.given:
        raise InputError(
            f"{source}: has means and no observed rewards, for which empty, columns and "
            "drop_missing are; leave them out"
        )
    if rewards is not None:
        raise InputError(
            f"rewards {rewards!r}: {source} says itself what its rewards are; leave it out"
        )


def _by_name(text: str) -> Instance:
    family, _, arguments = text.partition(":")
    if family in FAMILIES:
        return {"random": _random, "scaled": _scaled, "gaussian": _gaussian}[family](
            text, arguments
        )
    if text in _MOVIELENS:
        return _movielens(text)
    return _load_file(data_folder() / f"{text}.toml", text)


def _random(text: str, arguments: str) -> Instance:
    try:
        arms, clients, seed = (int(part) for part in arguments.split(","))
        if "_" in arguments or not arguments.isascii():
            raise ValueError(arguments)  # what only Python reads as a number
    except ValueError:
        raise InputError(f"{text!r}: must be random:K,M,SEED, three whole numbers") from None
    if arms < 1 or clients < 1:
        raise InputError(f"{text!r}: K and M must be at least 1")
    refuse_many_cells(repr(text), arms, clients)
    if not 0 <= seed <= MOST_SEED:
        raise InputError(f"{text!r}: the seed must lie in 0 .. 2^64 - 1")
    # raw Philox words: NumPy promises them for ever, which it does not for Generator.random
    words = np.random.Philox(key=seed).random_raw(arms * clients)
    means = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return Instance(
        means.reshape(arms, clients), name=text, description=f"means uniform in [0, 1), seed {seed}"
    )


def _scaled(text: str, arguments: str) -> Instance:
    name, comma, factor_text = arguments.rpartition(",")
    if not comma or not NUMBER.fullmatch(factor_text):
        raise InputError(f"{text!r}: must be scaled:NAME,FACTOR, as in scaled:synthetic,0.1")
    factor = float(factor_text)
    if not 0 < factor < math.inf:
        raise InputError(f"{text!r}: the factor must be above 0 and finite")
    base = load(name)
    rewards = base.rewards.scaled(factor)
    means = None if rewards.own_means is not None else base.means * factor
    description = f"{base.name}, means x {factor:g}"
    return changed(base, means=means, rewards=rewards, name=text, description=description)


def _gaussian(text: str, arguments: str) -> Instance:
    base = load(arguments)
    description = f"{base.name}'s means, with Gaussian rewards"
    return changed(base, means=base.means, rewards=Gaussian(), name=text, description=description)


def _load_file(
    path: Path,
    name: str,
    rewards: Rewards | str | None = None,
    reading: Reading = Reading(),  # noqa: B008
) -> Instance:
    content = {"name": name, **_READERS[path.suffix.lower()](path, reading)}
    observed = path.suffix.lower() != ".toml" and "rewards" in content
    _refuse_options(
        path, rewards if "rewards" in content else None, Reading() if observed else reading
    )
    if rewards is not None:
        content["rewards"] = Rewards.parse(rewards)
    with named(path):
        made = Instance(**content)
    filled = reading.empty not in (None, ABSENT)
    if observed and (doubt := doubtful_gaps(made, filled)):
        warnings.warn(doubt, UncertainWarning, stacklevel=5)
    return made


def _movielens(name: str) -> Instance:
    from fastfed.model.movielens import builtin_histogram  # it imports `observed_files`

    description = (
        "MovieLens (HetRec 2011): genres rated in countries; counts and means exact, reward shapes "
        f"reconstructed; {_MOVIELENS[name][1]}"
    )
    content = from_rewards(builtin_histogram(), empty=_MOVIELENS[name][0])
    return Instance(name=name, description=description, **content)


def save(instance: Instance, path: Path) -> None:
    """Write an instance to a file: see `Instance.save`."""
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise InputError(
            f"{path}: an instance is saved as .toml, .csv or .parquet, not {path.suffix!r}"
        )
    with replacing(path) as file:
        if suffix == ".parquet":
            to_histogram(instance).write_parquet(file)
        else:
            text = to_toml(instance) if suffix == ".toml" else to_csv(instance)
            file.write(text.encode("utf-8", "backslashreplace"))


_READERS = {".toml": read_toml, ".csv": read_csv, ".parquet": read_parquet}
