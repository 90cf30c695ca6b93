"""Tables and one plot from the JSON of a benchmark run: no number is typed.

    python -m pytest benchmarks -n 0 --benchmark-json bench.json
    python benchmarks/report.py bench.json --readme README.md --page docs/explanation/speed.md
        --plot docs/figures/speed.png

The README has the small table, between its markers, and the page has all tables. Tables leave out
what the run did not measure. Numbers from a noisy machine are not written unless ``--noisy`` is
given.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import median
from typing import Any

NOISY = 1.25  # a median round over the best one, of the benchmark in the middle
STEPPER = "numba_stepper"
BASELINES = {
    "literal": "Algorithm 1 in plain Python",
    "numpy_batch": "NumPy, vectorised over trials",
    "numba_plain": "Numba, every step, NumPy's normals",
    STEPPER: "Numba, every step, fast generator",
}
FACTORS = ("1", "0.1", "0.01", "0.001")
INSTANCES = ("synthetic", "bernoulli", "movielens", "random:20,38", "random:100,100")
SCHEDULES = {
    "fedelim": "FedElim",
    "fedelim0": "FedElim0",
    "eight schedules": "eight schedules at once",
}
STARTS = {
    "test_help": "`fastfed --help` takes",
    "test_first_call_warm_cache": "the first simulation",
    "test_first_call_empty_cache": "the first simulation with compilation",
}

Info = dict[str, Any]  # what one benchmark told
Found = dict[str, Info]  # by the benchmark's name


def read(content: Info) -> Found:
    return {
        one["name"]: {**one["extra_info"], "best_seconds": one["stats"]["min"]}
        for one in content["benchmarks"]
    }


def fastfed_at(found: Found, factor: str) -> Info:
    return found.get(f"test_hardness[{factor}]", {})


def baseline_at(found: Found, name: str, factor: str) -> Info:
    if factor == "1":
        return found.get(f"test_baseline[{name}]", {})
    return found.get(f"test_stepper_on_harder_means[{factor}]", {}) if name == STEPPER else {}


def time_of(info: Info) -> float:
    """Microseconds a trial; nan if that was not measured."""
    return float(info.get("microseconds_a_trial", math.nan))


def points(infos: list[Info]) -> list[tuple[float, float]]:
    """Return (pulls of a trial, seconds of a trial) of the measured points."""
    return [(info["pulls_a_trial"], time_of(info) / 1e6) for info in infos if info]


def slope(line: list[tuple[float, float]]) -> float:
    """Fit the slope of log y against log x by least squares."""
    x, y = ([math.log(point[axis]) for point in line] for axis in (0, 1))
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    together = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return together / sum((a - x_mean) ** 2 for a in x)


def digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def duration(microseconds: float) -> str:
    if math.isnan(microseconds):
        return ""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{digits(microseconds / size)} {unit}"
    return f"{digits(microseconds)} µs"


def times(theirs: float, ours: float) -> str:
    value = theirs / ours
    return "" if math.isnan(value) else f"{digits(value)} x"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table(head: list[str], lines: list[list[str]]) -> str:
    """In Markdown; nothing if there are no lines."""
    every = [head, ["---"] * len(head), *lines] if lines else []
    return "\n".join(f"| {' | '.join(cells)} |" for cells in every)


def against_baselines(found: Found) -> str:
    ours = time_of(fastfed_at(found, "1"))
    lines = []
    for name, words in BASELINES.items():
        if theirs := baseline_at(found, name, "1"):
            lines.append([words, duration(time_of(theirs)), times(time_of(theirs), ours)])
    if not math.isnan(ours):
        lines.append(["fastfed", duration(ours), ""])
    return table(
        [
            "FedElim on `synthetic`, delta 0.01, one thread",
            "time per trial",
            "fastfed is faster by",
        ],
        lines,
    )


def on_harder_means(found: Found) -> str:
    lines, few = [], []
    for factor in FACTORS:
        ours, theirs = fastfed_at(found, factor), baseline_at(found, STEPPER, factor)
        if ours:
            lines.append(
                [
                    factor,
                    f"{ours['pulls_a_trial']:.2e}",
                    f"{ours['draws_a_trial']:,.0f}",
                    duration(time_of(ours)),
                    duration(time_of(theirs)),
                    times(time_of(theirs), time_of(ours)),
                ]
            )
        if theirs:
            few.append(f"{theirs['trials']} at means x {factor}")
    text = table(
        [
            "the same, with all means multiplied by",
            "pulls per trial",
            "fastfed's draws",
            "fastfed, time per trial",
            BASELINES[STEPPER],
            "fastfed is faster by",
        ],
        lines,
    )
    line = points([fastfed_at(found, factor) for factor in FACTORS])
    said = []
    if len(line) > 1:
        said.append(f"fastfed's time grows as the pulls to the power {slope(line):.2f}.")
    if few:
        said.append(
            f"Baselines ran few trials (the last one {', '.join(few)}). Their time is the measured "
            "time per pull, times the mean pulls."
        )
    return "\n\n".join(filter(None, (text, " ".join(said))))


def in_short(found: Found) -> str:
    """Write the README's part: baselines, one hard instance, times of a start."""
    said = []
    if hardest := fastfed_at(found, FACTORS[-1]):
        said.append(
            f"If all gaps of `synthetic` are multiplied by {FACTORS[-1]}, a trial has "
            f"{hardest['pulls_a_trial']:.2e} pulls and takes {duration(time_of(hardest))}."
        )
    said += [first_starts(found)]
    return "\n\n".join(filter(None, (against_baselines(found), " ".join(filter(None, said)))))


def first_starts(found: Found) -> str:
    starts = [
        f"{words} {duration(found[name]['best_seconds'] * 1e6)}"
        for name, words in STARTS.items()
        if name in found
    ]
    if not starts:
        return ""
    *most, last = starts
    return f"In a fresh process {', '.join(most)}{', and ' if most else ''}{last}."


def every_trial(found: Found) -> str:
    """Write the table of times of a trial.

    Beside each finite instance stands its Gaussian twin, and the ratio of the two times.
    """
    lines, prices = [], []
    for instance in INSTANCES:
        own = [found.get(f"test_trial[{instance}-{name}]", {}) for name in SCHEDULES]
        twins = [found.get(f"test_twin[{instance}-{name}]", {}) for name in SCHEDULES]
        if known := next(filter(None, own), None):
            shape = f"{known['arms']} arms x {known['clients']} clients"
            lines.append(
                [f"`{known['instance']}`, {shape}", *(duration(time_of(info)) for info in own)]
            )
        if any(twins):
            lines.append(["its Gaussian twin", *(duration(time_of(info)) for info in twins)])
        if own[0] and twins[0]:
            of_twin = "" if prices else " the time of the twin"
            prices.append(f"{times(time_of(own[0]), time_of(twins[0]))}{of_twin} on `{instance}`")
    text = table(["Time per trial, delta 0.01, one thread", *SCHEDULES.values()], lines)
    said = (
        (
            "The eight schedules are FedElim, `periodic:H` for H = 1, 10, ..., 100,000, and "
            "`superexponential`. A Gaussian twin has the same means and the same radius as the "
            "instance above it, and Gaussian noise of standard deviation 1/2 (`bernoulli`) or 1 "
            f"(`movielens`). FedElim takes {' and '.join(prices)}, because the rewards are "
            "discrete."
        )
        if prices
        else ""
    )
    return "\n\n".join(filter(None, (text, said)))


def in_sentences(found: Found) -> str:
    said = []
    if sweep := found.get("test_sweep"):
        said.append(
            f"The default sweep, {sweep['trials_a_cell']:,} trials, {sweep['rows']:,} rows: "
            f"{sweep['seconds']:.1f} s on {sweep['threads']} threads, "
            f"{sweep['rows_a_second']:,.0f} rows a second. Of the threads' time kernels take "
            f"{percent(sweep['kernel_share'])}, frames {percent(sweep['frame_share'])}, Parquet "
            f"{percent(sweep['parquet_share'])}, the rest {percent(sweep['rest_share'])}: "
            f"{percent(sweep['waiting_share'])} waiting, "
            f"{percent(sweep['rest_share'] - sweep['waiting_share'])} other work."
        )
    threads = {
        info["threads"]: info["trials_a_second"]
        for name, info in found.items()
        if name.startswith("test_threads")
    }
    if len(threads) > 1:
        most, least = max(threads), min(threads)
        said.append(
            f"Trials a second on {most} threads: {threads[most] / threads[least]:.2f} x "
            f"those on {least}."
        )
    said += filter(None, [first_starts(found)])
    draws = [
        f"{found[name]['draws_a_second'] / 1e6:,.0f} million {words}"
        for words in ("Philox words", "normals")
        if (name := f"test_generator[{words}]") in found
    ]
    if draws:
        said.append(f"A second of the generator: {', '.join(draws)}.")
    return "\n\n".join(said)


def machine(content: Info) -> str:
    about = content["machine_info"]
    cpu = about.get("cpu", {})
    name = cpu.get("brand_raw") or about.get("machine", "")
    return f"Measured on {cpu.get('count', '?')} cores ({name}), Python {about['python_version']}."


def noise(content: Info) -> float:
    """Return the median round over the best round, for the benchmark in the middle."""
    spreads = [
        one["stats"]["median"] / one["stats"]["min"]
        for one in content["benchmarks"]
        if one["stats"]["rounds"] >= 3
    ]
    return median(spreads) if spreads else 1.0


def write_between(path: Path, marker: str, text: str) -> None:
    """Replace what a file has between the markers <!-- NAME --> and <!-- /NAME -->."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, found, rest = path.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path}: no {begin} ... {end} in it")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def plot(found: Found, path: Path) -> None:
    """Plot the time of a trial against its pulls.

    Points are measured. Beyond the last point of a baseline, its line is dashed and continues at
    its cost of a pull.
    """
    from fastfed.display.figures import save, style

    fastfed = points([fastfed_at(found, factor) for factor in FACTORS])
    if len(fastfed) < 2:
        raise SystemExit("no plot: the run did not measure fastfed on harder means")
    last = fastfed[-1][0]
    with style() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
        for (name, words), marker, colour in zip(
            BASELINES.items(), "sD^v", ("#c8502b", "#2f7d4f", "#7a4fa0", "#8a6d1d"), strict=True
        ):
            line = points([baseline_at(found, name, factor) for factor in FACTORS])
            if line:
                ax.plot(*zip(*line, strict=True), color=colour, marker=marker, label=words)
                pulls, seconds = line[-1]
                ax.plot(
                    [pulls, last],
                    [seconds, seconds / pulls * last],
                    color=colour,
                    linestyle="--",
                    linewidth=0.9,
                )
        ax.plot(
            [],
            [],
            color="#555555",
            linestyle="--",
            linewidth=0.9,
            label="extrapolated: at its cost a pull",
        )
        ax.plot(
            *zip(*fastfed, strict=True),
            color="#1b4f8f",
            marker="o",
            label=f"fastfed (slope {slope(fastfed):.2f})",
        )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("pulls a trial")
        ax.set_ylabel("seconds a trial")
        ax.set_title("FedElim on the synthetic instance, means scaled down, one thread")
        ax.legend(handlelength=2.8, loc="upper left")
        save(figure, path.with_suffix(""), [path.suffix[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("json", type=Path)
    parser.add_argument("--readme", type=Path, help="a file with the markers of the small table")
    parser.add_argument("--page", type=Path, help="a file with the markers of all tables")
    parser.add_argument("--plot", type=Path, help="a .png, .pdf or .svg file")
    parser.add_argument("--noisy", action="store_true", help="write numbers of a noisy machine")
    given = parser.parse_args()
    content = json.loads(given.json.read_text())
    found = read(content)
    parts = [
        against_baselines(found),
        on_harder_means(found),
        every_trial(found),
        in_sentences(found),
        machine(content),
    ]
    text = "\n\n".join(filter(None, parts))
    print(text)
    spread = noise(content)
    if spread > NOISY and not given.noisy and (given.readme or given.page or given.plot):
        raise SystemExit(
            f"nothing written: a median round took {spread:.2f} x the best one, more "
            f"than {NOISY} x. Measure on an idle machine, or add --noisy"
        )
    if given.readme:
        write_between(given.readme, "speed", in_short(found))
    if given.page:
        write_between(given.page, "benchmarks", text)
    if given.plot:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
