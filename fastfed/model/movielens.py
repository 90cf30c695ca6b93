"""The MovieLens instance: genres are arms, countries of origin are clients, a pull is a rating.

The data set is HetRec 2011 (Cantador, Brusilovsky and Kuflik, RecSys 2011). `builtin_histogram`
reads the table that comes along in ``data/``, where counts and means are exact and reward shapes
reconstructed (``data/README.md``); `build` makes the same table from the original files, for those
who have them.

A rating counts once for each genre and each country of its movie. The clean-up, by rule:

paper  keep a country whose best genre leads the second by 0.1 or more, genre Short left aside.
       The paper says that countries with several best arms were removed; this is the reading that
       gives its 38 countries and 2,040,975 rows. Short has two ratings in all, both in the USA.
ties   drop a country whose best genre is tied for, which is what the paper's words say: 59 of 72
       countries are left.

Not all genres have been rated in every country. The paper does not say what such an empty cell
pays; ``empty="zero"`` leaves it out of the table, to be read as an arm that always pays 0, and
``empty="drop-country"`` drops every country that has one.
"""

from __future__ import annotations

import io
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import polars as pl

from fastfed.errors import InputError, nearest
from fastfed.files import data_folder, read_input
from fastfed.model.instance import Instance
from fastfed.model.instance_files.observed_files import from_rewards

RULES = ("paper", "ties")
EMPTIES = ("zero", "drop-country")

_RATINGS = ("user_ratedmovies.dat", "user_ratedmovies-timestamps.dat")
_LEAD = 0.1
_ROUNDING = 1e-12  # 4.1 - 4.0 is a lead of 0.1, too
_ASIDE = "Short"
_BLANK = "nan"  # what the paper calls the country of movies that have none


@dataclass(frozen=True)
class Counts:
    """The counts that the paper prints."""

    ratings: int
    joined: int
    rows: int
    movies: int
    countries: int
    genres: int


PAPER = Counts(
    ratings=855_598, joined=2_240_215, rows=2_040_975, movies=8_636, countries=38, genres=20
)
_NAMES = ("ratings", "rows joined", "rows kept", "movies kept", "countries kept", "genres kept")


@dataclass(frozen=True)
class Report:
    """The counts that `build` found, to be compared with the paper; its text is a table."""

    found: Counts
    dropped: tuple[str, ...]  # countries
    empty_cells: int  # pairs of a kept country and a kept genre without a rating

    @property
    def differences(self) -> tuple[str, ...]:
        """Names of the fields of `Counts` that are not as in the paper."""
        printed = asdict(PAPER)
        return tuple(name for name, count in asdict(self.found).items() if count != printed[name])

    def __str__(self) -> str:
        lines = [f"{'':<16}{'paper':>12}{'found':>12}"]
        for name, paper, found in zip(_NAMES, astuple(PAPER), astuple(self.found), strict=True):
            mark = "" if paper == found else "  differs"
            lines.append(f"{name:<16}{paper:>12,}{found:>12,}{mark}")
        return "\n".join(lines)


def builtin_histogram() -> pl.DataFrame:
    """Return the counts of rewards: columns arm, client, reward and count, without empty cells."""
    table = pl.read_csv(
        data_folder() / "movielens.csv", schema_overrides={"country": pl.String, "genre": pl.String}
    )
    rewards = [name for name in table.columns if name.startswith("h")]
    return (
        table.unpivot(
            rewards, index=["genre", "country"], variable_name="reward", value_name="count"
        )
        .filter(pl.col("count") > 0)
        .select(
            arm="genre",
            client="country",
            reward=pl.col("reward").str.slice(1).cast(pl.Float64),
            count="count",
        )
        .sort("arm", "client", "reward")
    )


def build(
    folder: str | Path, rule: str = "paper", empty: str = "zero"
) -> tuple[pl.DataFrame, Report]:
    """Build the histogram of `builtin_histogram` from the original files in ``folder``."""
    _check("rule", rule, RULES)
    _check("empty", empty, EMPTIES)
    ratings, joined = _joined(Path(folder))
    means = joined.group_by("country", "genre").agg(
        mean=(pl.col("rating") * pl.col("count")).sum() / pl.col("count").sum()
    )
    kept = _clean(means, rule)
    if empty == "drop-country":
        kept = _without_empty_cells(means.join(kept, on="country", how="semi"))
    rows = joined.join(kept, on="country", how="semi")
    if rows.height == 0:
        raise InputError(f"no country is left with rule {rule!r} and empty {empty!r}")
    histogram = (
        rows.group_by(arm="genre", client="country", reward="rating")
        .agg(pl.col("count").sum())
        .sort("arm", "client", "reward")
    )
    found = Counts(
        ratings=ratings,
        joined=int(joined["count"].sum()),
        rows=int(rows["count"].sum()),
        movies=rows["movieID"].n_unique(),
        countries=kept.height,
        genres=rows["genre"].n_unique(),
    )
    dropped = joined.join(kept, on="country", how="anti")["country"].unique().sort()
    cells = histogram.select("arm", "client").n_unique()
    return histogram, Report(found, tuple(dropped), found.countries * found.genres - cells)


def _joined(folder: Path) -> tuple[int, pl.DataFrame]:
    """Read the original files; return the number of ratings, and a table of counts.

    The table has one row for each country, genre, movie and value of a rating. A rating counts once
    for each country and genre of its movie.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; it must hold the HetRec 2011 MovieLens files")
    present = [name for name in _RATINGS if (folder / name).is_file()]
    if not present:
        raise InputError(f"{folder}: neither {' nor '.join(_RATINGS)} is there")
    ratings = _read(
        folder / present[0], {"userID": pl.Int64, "movieID": pl.Int64, "rating": pl.Float64}
    )
    countries = _read(
        folder / "movie_countries.dat", {"movieID": pl.Int64, "country": pl.String}, blank=_BLANK
    )
    genres = _read(folder / "movie_genres.dat", {"movieID": pl.Int64, "genre": pl.String})
    counted = (
        ratings.join(countries, on="movieID")
        .join(genres, on="movieID")
        .group_by("country", "genre", "movieID", "rating")
        .agg(count=pl.len().cast(pl.Int64))
    )
    number, joined = pl.collect_all([ratings.select(pl.len()), counted])
    if joined.height == 0:
        raise InputError(
            f"{folder}: no rated movie has a country and a genre; are the files of one data set?"
        )
    return int(number.item()), joined


def build_instance(
    folder: str | Path, rule: str = "paper", empty: str = "zero"
) -> tuple[Instance, Report]:
    """Make the instance from `build`, in which an empty cell pays 0."""
    histogram, report = build(folder, rule, empty)
    return Instance(name="movielens", **from_rewards(histogram, empty=0.0)), report


def _clean(means: pl.DataFrame, rule: str) -> pl.DataFrame:
    """Return the countries to keep, as a column.

    A single genre is compared with an arm that pays 0.
    """
    if rule == "paper":
        means = means.filter(pl.col("genre") != _ASIDE)
    ordered = pl.col("mean").sort(descending=True)
    leads = means.group_by("country").agg(
        first=ordered.first(), second=ordered.slice(1, 1).first().fill_null(0.0)
    )
    lead = pl.col("first") - pl.col("second")
    least = _LEAD - _ROUNDING if rule == "paper" else _ROUNDING
    return leads.filter(lead >= least).select("country")


def _without_empty_cells(means: pl.DataFrame) -> pl.DataFrame:
    genres = means["genre"].n_unique()
    return means.group_by("country").len().filter(pl.col("len") == genres).select("country")


def _read(
    path: Path, columns: dict[str, type[pl.DataType]], blank: str | None = None
) -> pl.LazyFrame:
    """Read columns of a tab-separated ISO-8859-1 file with a header.

    A repeated line counts once. A line with a blank cell is refused, unless `blank` is the text for
    one.
    """
    text = read_input(path, 2**31).decode("iso-8859-1")
    header = text.partition("\n")[0].rstrip("\r").split("\t")
    for name in columns:
        if name not in header:
            raise InputError(
                f"{path}: no column {name!r}{nearest(name, header)}; tab-separated, "
                f"its first line must name {', '.join(columns)}"
            )
    try:
        table = pl.read_csv(
            io.BytesIO(text.encode()),
            separator="\t",
            quote_char=None,
            columns=list(columns),
            schema_overrides=columns,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    strings = [name for name, kind in columns.items() if kind is pl.String]
    table = table.filter(~pl.all_horizontal(pl.all().is_null())).with_columns(  # empty lines
        pl.col(strings).str.strip_chars().replace("", None)
    )
    if blank is not None:
        table = table.with_columns(pl.col(strings).fill_null(blank))
    for name, kind in columns.items():
        bad = table[name].null_count()
        if kind is pl.Float64:
            bad += int((~table[name].is_finite()).sum())
        if bad:
            lines = "1 line" if bad == 1 else f"{bad:,} lines"
            raise InputError(f"{path}: {lines} without a {name}")
    return table.unique().lazy()


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(
            f"{name} = {value!r}{nearest(str(value), known)}: must be {' or '.join(known)}"
        )
