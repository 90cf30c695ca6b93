"""The JSON of a benchmark run as the README's table and one plot.

    python -m pytest benchmarks --benchmark-json bench.json
    python benchmarks/report.py bench.json --readme README.md --plot docs/speed.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"
WORDS = {
    "test_baseline[literal-20]": "Algorithm 1 in plain Python",
    "test_baseline[numpy_batch-100]": "NumPy, all trials at once, with masks",
    "test_baseline[numba_plain-50]": "Numba, every step, NumPy's normals",
    "test_baseline[numba_stepper-100]": "Numba, every step, fast generator",
}


def rows(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one["extra_info"] for one in content["benchmarks"]
            if "microseconds_a_trial" in one["extra_info"]}


def table(found: dict[str, dict[str, Any]]) -> str:
    ours = found["test_fastfed"]["microseconds_a_trial"]
    lines = ["| FedElim on `synthetic`, delta 0.01, one thread | microseconds a trial | "
             "fastfed is faster by |", "|---|---|---|"]
    for name, words in WORDS.items():
        if name in found:
            theirs = found[name]["microseconds_a_trial"]
            lines.append(f"| {words} | {theirs:,.0f} | {theirs / ours:,.0f} x |")
    lines.append(f"| fastfed | {ours:,.0f} | |")
    hard = [(name, found[name]) for name in found if name.startswith("test_hardness")]
    if hard:
        lines += ["", "| fastfed, means times | pulls a trial | microseconds a trial |",
                  "|---|---|---|"]
        lines += [f"| {name[14:-1]} | {info['pulls_a_trial']:.3g} | "
                  f"{info['microseconds_a_trial']:,.0f} |" for name, info in hard]
    return "\n".join(lines)


def plot(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Time a trial against pulls a trial: fastfed as measured, steppers at their cost a pull."""
    from fastfed.figures import Line, draw, save, style

    hard = sorted((info["pulls_a_trial"], info["microseconds_a_trial"])
                  for name, info in found.items() if name.startswith("test_hardness"))
    pulls = [one for one, _ in hard]
    lines = [Line("fastfed", pulls, [time for _, time in hard])]
    for name, words in WORDS.items():
        if name in found:
            a_pull = found[name]["microseconds_a_trial"] / found[name]["pulls_a_trial"]
            lines.append(Line(f"{words} (at its cost a pull)", pulls, [a_pull * n for n in pulls],
                              plain=True))
    with style() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        draw(ax, lines, x_label="pulls a trial", y_label="microseconds a trial",
             title="FedElim, synthetic instance, means scaled down")
        save(figure, path.with_suffix(""), [path.suffix[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path)
    parser.add_argument("--readme", type=Path, help="a file with the benchmark markers")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    found = rows(json.loads(given.json.read_text()))
    text = table(found)
    print(text)
    if given.readme:
        before, _, rest = given.readme.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        given.readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    if given.plot:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
