"""Tables as text, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastfed.errors import printable
from fastfed.statistics.numbers import short

if TYPE_CHECKING:
    import polars as pl

    from fastfed.theory.bounds import Bounds

_MOST_ARMS = 20  # of an instance, in a table of bounds


def _clipped(name: str, width: int) -> str:
    """A name in its column; one that does not fit says so."""
    name = printable(name)
    return f"{name:<{width}}" if len(name) <= width else f"{name[:width - 1]}…"


def summary_text(frame: pl.DataFrame) -> str:
    """A summary, one line a row."""
    text = [f"{'instance':<10} {'delta':>8} {'C':>8} {'schedule':<20} {'total':>9} {'± sem':<9} "
            f"{'pulls':>9} {'error <':>7} {'x FE0':>8}"]
    for row in frame.iter_rows(named=True):
        sem = "" if row["total_sem"] is None else f"±{row['total_sem']:.3g}"
        ratio = "" if row["ratio_to_fedelim0"] is None else f"{row['ratio_to_fedelim0']:.3g}"
        cut = "*" if row["truncated"] else ""  # see the line above the table
        text.append(f"{_clipped(row['instance'], 10)} {row['delta']:>8.3g} {row['cost']:>8.3g} "
                    f"{_clipped(row['schedule'], 20)} {short(row['total_mean']):>9} {sem:<9} "
                    f"{short(row['pulls_mean']):>9} {row['error_high']:>7.2g} {ratio:>8}{cut}")
    from fastfed.statistics.summary import not_ended_text

    warning = not_ended_text(frame)
    return "\n".join([warning, *text] if warning else text)


def bounds_text(found: Sequence[Bounds]) -> str:
    """What `fastfed bounds` prints: the arms once for each delta, the schemes for each cost."""
    text: list[str] = []
    for position, b in enumerate(found):
        if position == 0 or b.delta != found[position - 1].delta:
            text += [*_arms_text(b), ""]
        text += [*_schemes_text(b), ""]
    return "\n".join(text[:-1])


def _arms_text(b: Bounds) -> list[str]:
    """What does not depend on the cost."""
    arms, clients = b.instance.shape
    text = [f"{printable(b.instance.name)}: {arms} arms, {clients} clients; delta {b.delta:g}, "
            f"confidence scale sigma {b.sigma:g}",
            f"T = {b.T:,.0f}   sharp, sum of max(n_km, n_k) = {b.T_sharp:,.0f}",
            f"lower bound on mean pulls: {short(b.lower)} (Theorem 3 as proved), "
            f"{short(b.lower_as_stated)} (as stated)", "",
            f"{'arm':<16} {'Delta_k':>9} {'T_k':>11} {'n_k':>11}   {'hardest client':<16} "
            f"{'Delta_km':>9} {'T_km':>9} {'n_km':>9}"]
    for k in range(min(arms, _MOST_ARMS)):
        m = int(b.local_gaps[k].argmin())
        text.append(f"{_clipped(b.instance.arms[k], 16)} {b.global_gaps[k]:>9.4g} "
                    f"{short(b.T_k[k]):>11} {short(b.n_k[k]):>11}   "
                    f"{_clipped(b.instance.clients[m], 16)} {b.local_gaps[k, m]:>9.4g} "
                    f"{short(b.T_km[k, m]):>9} {short(b.n_km[k, m]):>9}")
    if arms > _MOST_ARMS:
        text.append(f"... {arms - _MOST_ARMS:,} more arms: --json has all")
    return text


def _schemes_text(b: Bounds) -> list[str]:
    """The schemes side by side at one cost."""
    breaking = len(b.breaking_arms)
    condition = ("every arm meets C ln T_k <= T_k" if not breaking else
                 f"{breaking:,} of {len(b.condition):,} arms break C ln T_k <= T_k")
    text = [f"delta {b.delta:g}, cost C {b.cost:g}: H_opt {b.period_opt:.5g}, lambda_opt "
            f"{b.base_opt:.5g}", f"{condition}; FedElim's total <= 3T "
            + ("follows" if b.three_T_follows else "does not follow"),
            f"{'scheme':<20} {'bound':<10} {'pulls':>13} {'uplinks':>13} {'C x uplinks':>13} "
            f"{'total':>13} {'total/T':>9}"]
    for scheme in b.schemes:
        name = scheme.name
        if scheme.parameter is not None and name != "fedelim":
            name += f":{scheme.parameter:g}"
        for variant in ("as_stated", "summed", "sharp"):
            costs = getattr(scheme, variant)
            over = short(costs.total / b.T if b.T else None)
            text.append(f"{name:<20.20} {variant.replace('_', ' '):<10} {short(costs.pulls):>13} "
                        f"{short(costs.uplinks):>13} {short(costs.comm):>13} "
                        f"{short(costs.total):>13} {over:>9}")
            name = ""
    return text
