"""The built-in table, and the loader on a small data set in the original format."""

from __future__ import annotations

import os

import polars as pl
import pytest
from helpers import refused

from fastfed.errors import InputError
from fastfed.files import data_folder
from fastfed.model import movielens

# movie: country, genres
MOVIES = {
    1: ("USA", ["Drama"]),
    2: ("USA", ["Comedy", "Short"]),
    3: ("USA", ["Short"]),
    4: ("", ["Drama"]),  # a country without a name
    5: ("Côte d'Ivoire", ["Drama", "Comedy"]),  # two genres, the same ratings: a tie,
    6: ("Côte d'Ivoire", ["Comedy"]),  # or it would be, but for this one
    7: ("Tieland", ["Drama", "Comedy"]),
    8: ("Nearland", ["Drama"]),
    9: ("Nearland", ["Comedy"]),
    10: ("Tenthland", ["Drama"]),
    11: ("Tenthland", ["Comedy"]),
    12: ("Lostland", []),  # no genre: drops out of the join
}
# movie: ratings, by users 1, 2, ...
RATINGS = {
    1: [4.0, 3.0], 2: [3.0, 2.0], 3: [5.0, 1.9], 4: [0.5], 5: [4.0, 3.0], 6: [5.0], 7: [2.5, 4.5],
    8: [4.0] * 20, 9: [4.0] * 19 + [3.0], 10: [4.5] + [4.0] * 4, 11: [4.0] * 5, 12: [1.0],
    99: [5.0],  # unheard of
}  # fmt: skip


def ratings_file(movies=None, dated=True):
    dates = "\tdate_day\tdate_month\tdate_year\tdate_hour\tdate_minute\tdate_second"
    lines = ["userID\tmovieID\trating" + (dates if dated else "\ttimestamp")]
    for movie, values in (movies or RATINGS).items():
        for user, value in enumerate(values, 1):
            when = "29\t10\t2006\t23\t17\t16" if dated else "1162160236000"
            lines.append(f"{user}\t{movie}\t{value:g}\t{when}")
    return lines


@pytest.fixture
def folder(tmp_path):
    countries = ["movieID\tcountry", *(f"{i}\t{c}" for i, (c, _) in MOVIES.items())]
    genres = ["movieID\tgenre", *(f"{i}\t{g}" for i, (_, gs) in MOVIES.items() for g in gs)]
    write(tmp_path, "user_ratedmovies.dat", ratings_file())
    write(tmp_path, "movie_countries.dat", countries)
    write(tmp_path, "movie_genres.dat", genres)
    return tmp_path


def write(folder, name, lines, end="\n"):
    (folder / name).write_bytes((end.join(lines) + end).encode("iso-8859-1"))


def means(histogram):
    cells = histogram.group_by("arm", "client").agg(
        mean=(pl.col("reward") * pl.col("count")).sum() / pl.col("count").sum()
    )
    return {(arm, client): mean for arm, client, mean in cells.iter_rows()}


def clients(histogram):
    return sorted(histogram["client"].unique())


def test_paper_rule(folder):
    assert 4.1 - 4.0 < 0.1  # rounding; Tenthland's lead is a tenth all the same
    histogram, report = movielens.build(folder)
    assert histogram.columns == ["arm", "client", "reward", "count"]
    assert means(histogram) == pytest.approx(
        {
            ("Drama", "USA"): 3.5,
            ("Comedy", "USA"): 2.5,
            ("Short", "USA"): 11.9 / 4,
            ("Drama", "nan"): 0.5,
            ("Drama", "Côte d'Ivoire"): 3.5,
            ("Comedy", "Côte d'Ivoire"): 4.0,
            ("Drama", "Tenthland"): 4.1,
            ("Comedy", "Tenthland"): 4.0,
        },
        abs=1e-12,
    )
    assert report.dropped == ("Nearland", "Tieland")
    assert report.found == movielens.Counts(
        ratings=64,
        joined=2 + 4 + 2 + 1 + 4 + 1 + 4 + 20 + 20 + 5 + 5,
        rows=2 + 4 + 2 + 1 + 4 + 1 + 5 + 5,
        movies=8,
        countries=4,
        genres=3,
    )
    assert report.empty_cells == 4 * 3 - 8
    assert int(histogram["count"].sum()) == report.found.rows


def test_short_is_left_aside_by_the_paper_rule_only(folder):
    more = {**RATINGS, 3: [5.0, 5.0], 2: [2.0, 2.0]}  # Short now ties with Drama: 3.5
    write(folder, "user_ratedmovies.dat", ratings_file(more))
    assert "USA" in clients(movielens.build(folder, "paper")[0])
    assert "USA" not in clients(movielens.build(folder, "ties")[0])


def test_ties_rule(folder):
    histogram, report = movielens.build(folder, rule="ties")
    assert clients(histogram) == ["Côte d'Ivoire", "Nearland", "Tenthland", "USA", "nan"]
    assert report.dropped == ("Tieland",)


def test_countries_with_empty_cells_can_be_dropped(folder):
    histogram, report = movielens.build(folder, empty="drop-country")
    assert clients(histogram) == ["USA"]  # no other has Short
    assert report.empty_cells == 0
    write(folder, "movie_genres.dat", ["movieID\tgenre", "1\tDrama", "4\tComedy"])
    with pytest.raises(InputError, match="no country is left with rule 'paper' and empty 'drop"):
        movielens.build(folder, empty="drop-country")


def test_repeated_lines_line_ends_and_the_other_ratings_file(folder):
    once = movielens.build(folder)
    (folder / "user_ratedmovies.dat").unlink()
    write(folder, "user_ratedmovies-timestamps.dat", ratings_file(dated=False), end="\r\n")
    for name in ("user_ratedmovies-timestamps.dat", "movie_countries.dat", "movie_genres.dat"):
        lines = (folder / name).read_bytes().decode("iso-8859-1").splitlines()
        write(folder, name, [*lines, lines[1], lines[-1], "", ""], end="\r\n")
    again = movielens.build(folder)
    assert again[0].equals(once[0])
    assert again[1] == once[1]


def test_report_names_what_differs(folder):
    _, report = movielens.build(folder)
    assert report.differences == ("ratings", "joined", "rows", "movies", "countries", "genres")
    lines = str(report).splitlines()
    assert lines[0].split() == ["paper", "found"]
    assert lines[1].split() == ["ratings", "855,598", "64", "differs"]
    as_printed = movielens.Report(movielens.PAPER, (), 508)
    assert as_printed.differences == ()
    assert "differs" not in str(as_printed)


def test_bad_folders(folder, tmp_path):
    for rule, text in (("papers", "did you mean 'paper'"), ("", "must be paper or ties")):
        with pytest.raises(InputError, match=text):
            movielens.build(folder, rule=rule)
    with pytest.raises(InputError, match="must be zero or drop-country"):
        movielens.build(folder, empty="mean")
    with pytest.raises(InputError, match="no such folder"):
        movielens.build(tmp_path / "elsewhere")
    (folder / "movie_genres.dat").unlink()
    with pytest.raises(InputError, match=r"movie_genres\.dat: cannot be read"):
        movielens.build(folder)
    (folder / "user_ratedmovies.dat").unlink()
    with pytest.raises(InputError, match=r"neither user_ratedmovies\.dat nor"):
        movielens.build(folder)


@pytest.mark.parametrize(("name", "lines", "text"), [
    ("movie_countries.dat", ["movieID,country", "1,USA"], "no column 'movieID'"),
    ("movie_countries.dat", ["movieID\tCountry", "1\tUSA"], "did you mean 'Country'"),
    ("movie_countries.dat", ["movieID\tcountry", "one\tUSA"], "could not parse"),
    ("movie_genres.dat", ["movieID\tgenre", "1\t"], "1 line without a genre"),
    ("movie_genres.dat", ["movieID\tgenre", "77\tDrama"], "files of one data set"),
    ("movie_genres.dat", [""], "no column 'movieID'"),
    ("user_ratedmovies.dat", ["userID\tmovieID\trating", "1\t1\tgood"], "could not parse"),
    ("user_ratedmovies.dat", ["userID\tmovieID\trating", "1\t1\t", "2\t1"],
     "2 lines without a rating"),
    ("user_ratedmovies.dat", ["userID\tmovieID\trating", "1\t1\tNaN"], "1 line without a rating"),
    ("user_ratedmovies.dat", ["userID\tmovieID\trating"], "files of one data set"),
])  # fmt: skip
def test_bad_files(folder, name, lines, text):
    write(folder, name, lines)
    with pytest.raises(InputError, match=text) as caught:
        movielens.build(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_builtin_table():
    histogram = movielens.builtin_histogram()
    assert histogram.columns == ["arm", "client", "reward", "count"]
    assert histogram["client"].n_unique() == movielens.PAPER.countries
    assert histogram["arm"].n_unique() == movielens.PAPER.genres
    assert "nan" in clients(histogram)
    assert histogram["count"].sum() == movielens.PAPER.rows
    assert histogram["count"].min() > 0
    assert sorted(histogram["reward"].unique()) == [0.5 * i for i in range(1, 11)]
    table = pl.read_csv(data_folder() / "movielens.csv")
    assert table.height == 252
    expected = {
        (genre, country): total / n
        for country, genre, n, total in table.select("country", "genre", "n", "sum").iter_rows()
    }
    assert means(histogram) == pytest.approx(expected, abs=1e-12)
    assert (table["n_exact"] <= table["n"]).all()


def test_a_pipe_among_the_original_files(tmp_path):
    """Reading it would wait for ever."""
    (tmp_path / "user_ratedmovies.dat").write_text("userID\tmovieID\trating\n1\t1\t3\n")
    os.mkfifo(tmp_path / "movie_countries.dat")
    refused(lambda: movielens.build(tmp_path), "movie_countries.dat", "a pipe or device")
