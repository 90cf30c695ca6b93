"""Speed over versions: figures of benchmark runs in `benchmarks/history/`, as a table and a plot.

    python -m pytest benchmarks -n 0 --benchmark-json bench.json
    python benchmarks/history.py --add bench.json --name 0.2.0
    python benchmarks/history.py --compare bench.json
    python benchmarks/history.py --plot docs/figures/speed-history.png

Machines differ, so the figures to compare are ratios: the time of a trial of the stepper (every
step, compiled) over fastfed's, both of the same run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from report import INSTANCES, SCHEDULES, STEPPER, baseline_at, machine, read, time_of

FOLDER = Path(__file__).parent / "history"
JOBS = {
    "synthetic": "test_hardness[1]",
    "synthetic, means x 0.01": "test_hardness[0.01]",
    **{
        f"{instance}, {words}": f"test_trial[{instance}-{name}]"
        for instance in INSTANCES
        for name, words in SCHEDULES.items()
    },
    **{
        f"four arms at two clients, {goal}": f"test_goals[{goal}-means x 1]"
        for goal in ("top 1", "top 2", "eps", "threshold")
    },
}

Entry = dict[str, Any]


def entry(content: dict[str, Any], name: str) -> Entry:
    """Make the entry of a run: machine, microseconds of the stepper and of fastfed's trials."""
    found = read(content)
    stepper = time_of(baseline_at(found, STEPPER, "1"))
    times = {job: time_of(found.get(key, {})) for job, key in JOBS.items()}
    measured = {job: time for job, time in times.items() if time == time}
    if stepper != stepper or not measured:
        raise SystemExit("the run has no times of the stepper, or none of trials")
    return {
        "name": name,
        "date": content["datetime"][:10],
        "machine": machine(content),
        "stepper": stepper,
        "microseconds": measured,
    }


def entries() -> list[Entry]:
    """Read the history, in the order of dates."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")]
    return sorted(found, key=lambda one: (one["date"], one["name"]))


def ratio(one: Entry, job: str) -> float | None:
    """Return the stepper's time over fastfed's, in one run."""
    time = one["microseconds"].get(job)
    return None if time is None else float(one["stepper"]) / float(time)


def table(every: list[Entry]) -> str:
    """Write the ratios in Markdown: a line for each job, a column for each version."""
    head = ["stepper's time over fastfed's", *(one["name"] for one in every)]
    lines = [head, ["---"] * len(head)]
    for job in JOBS:
        ratios = [ratio(one, job) for one in every]
        if any(ratios):
            lines.append([job, *("" if one is None else f"{one:.3g}" for one in ratios)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plot(every: list[Entry], path: Path) -> None:
    """Plot the ratios against versions."""
    from fastfed.display.figures import save, style

    with style() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        for job, marker in zip(("synthetic", "synthetic, FedElim0"), "os", strict=True):
            points = [
                (one["name"].replace(", ", ",\n"), ratio(one, job))
                for one in every
                if ratio(one, job)
            ]
            ax.plot(*zip(*points, strict=True), marker=marker, label=job)
        ax.set_ylabel("stepper's time over fastfed's")
        ax.set_ylim(bottom=0)
        ax.set_title("A trial on the synthetic instance, one thread, same machine")
        ax.legend()
        save(figure, path.with_suffix(""), [path.suffix[1:]])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=Path, help="JSON of a run, to be kept in the history")
    parser.add_argument("--name", help="of the version that was measured")
    parser.add_argument("--compare", type=Path, help="JSON of a run, to stand beside the history")
    parser.add_argument("--plot", type=Path, help="figure to write")
    asked = parser.parse_args()
    if asked.add:
        if not asked.name:
            parser.error("--add needs --name")
        made = json.dumps(entry(json.loads(asked.add.read_text()), asked.name), indent=1)
        (FOLDER / f"{asked.name}.json").write_text(made + "\n", encoding="utf-8")
    mine = [entry(json.loads(asked.compare.read_text()), "this run")] if asked.compare else []
    print(table([*entries(), *mine]))
    if asked.plot:
        plot(entries(), asked.plot)


if __name__ == "__main__":
    main()
