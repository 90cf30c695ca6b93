"""Rewards with finite support: the draws of their walks on counts, and the certificates of pairs.

The counts are in `counts`, the bounds for pairs inside an interval in `permuted`.

Sums of rewards are kept less n times the smallest value of the client, which is the same for every
arm and so drops out of every comparison, at the client and at the server: values c and c + 1 make
the same sums as 0 and 1, digit for digit, however large c is. What is said of the rewards in an
interval is said from their counts, not from differences of sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inner
from fastfed.kernels.extremes import larger
from fastfed.kernels.kernel_arrays import fill
from fastfed.kernels.memory import (
    DEPTHS,
    DRAWN,
    IS_RIGHT,
    LAST,
    LEFT,
    MIDDLE,
    MOST_PAIRS,
    ORIGIN,
    RIGHT,
    STEP,
    A,
    B,
    Floats,
    ints,
)
from fastfed.kernels.random.discrete import VARIATE_ERROR, VARIATE_ERROR_A_SIGMA
from fastfed.kernels.random.halves import half as random_half
from fastfed.kernels.random.normal import is_power_of_four, quarter_words
from fastfed.kernels.random.words import spare_bits
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rewards.counts import (
    LEAF,
    count_walk_value,
    deviations,
    extend_cell,
    later_count_walk_value,
    shuffle_steps,
    split_cell,
    weigh,
)
from fastfed.kernels.rewards.finite_pairwise import pairwise_memory, settle_pairs
from fastfed.kernels.rewards.permuted import (
    DISTANCES,
    RANGES,
    SQUARES,
    choose_bound,
    stays_below,
)
from fastfed.kernels.sums import add_client


class FiniteMemory(NamedTuple):
    """Scratch memory of walks on counts."""

    # how often each value came: see `counts`; (slots, M, K, V - 1), so that a client's pass finds
    # its arms side by side: the other way round each is on a page of its own
    counts: Any
    words: Any  # (depths, K, M, 3) of the two quarter points beside a middle, and spare bits
    sums: Any  # (K, 3) what an interval's rewards say of each arm: see `permuted`
    steps: Any  # (LEAF,) scratch of a shuffle
    rest: Any  # (V,)
    single: Any  # (4, V) scratch of a single value
    # (K, M) spine nodes drawn so far in the trial of `stamp`: another job that shares the memory
    # may have drawn more than `walks.known` says
    made: Any
    stamp: Any  # (2,) the seed and the trial
    pairwise: Any  # see `finite_pairwise`


class FiniteRewards(NamedTuple):
    """Rewards with finite support: values for each arm and client, the rarest first."""

    kinds: Any  # (K, M) the number of the cell's own values, less one
    # (K + 1, M) its last value, less the client's smallest, which is the last row: see `gaussian`
    base: Any
    rise: Any  # (K, M, V - 1) its other values, less its last
    shares: Any  # (K, M, V - 1) the weight of a value as a share of that and all that follow
    logs: Any  # (K, M, V - 1) ln(1 - share), or ln(share) if that is above 1/2
    upto: Any  # (K, M, V - 1) words below which a reward is one of the last i + 1 values
    reach: Any  # (K, M) its largest value less its smallest
    noise: Any  # the smallest standard deviation of a reward, of those that are not 0

    @property
    def longest_walk(self) -> int:
        return LEAF

    @property
    def origin(self) -> Floats:
        return np.asarray(self.base[-1])

    def draw_error(self, steps: Floats) -> Floats:
        """Bound the error of a draw: as many variates as a cell has values, less one.

        Draws by words alone (places, single rewards, shuffles) are nearer to their distribution:
        8 rewards, each found among 64 thresholds or fewer that are rounded to 2^-53, by 2e-14 a
        value.
        """
        each = VARIATE_ERROR + VARIATE_ERROR_A_SIGMA * 0.5 * np.sqrt(steps)
        return np.asarray(self.rise.shape[2] * each)

    def memory(self, slots: int, arms: int, clients: int) -> FiniteMemory:
        most = self.rise.shape[2]
        return FiniteMemory(
            ints(slots, clients, arms, most),
            np.zeros((DEPTHS if slots else 0, arms, clients, 3), np.uint64),
            np.zeros((arms, 3)),
            np.zeros(LEAF),
            ints(most + 1),
            ints(4, most + 1),
            ints(arms, clients),
            np.full(2, 2**64 - 1, np.uint64),  # of no trial
            pairwise_memory(most),
        )

    def kept_spine(self, trials: int, arms: int, clients: int) -> Any:
        """Make the memory of `hooks.walk_value_later`: see `counts.later_count_walk_value`."""
        return ints(trials, arms, clients, 3, max(1, self.rise.shape[2]))


# weights whose tables are made at a time: with all at once, tables took four times their memory for
# a moment
_TOGETHER = 65_536


def finite_rewards(values: Floats, weights: Floats, one_origin: bool = False) -> FiniteRewards:
    """Make rewards with these values (V,), ascending, and weights (K, M, V).

    With ``one_origin`` all clients have the same origin: see `gaussian.centred`.
    """
    arms, clients, support = weights.shape
    cells = weights.reshape(-1, support)
    count, others = len(cells), support - 1
    made = (
        ints(count),
        *(np.zeros(count) for _ in range(3)),
        *(np.zeros((count, others)) for _ in range(3)),
        np.zeros((count, others), np.uint64),
    )
    size = max(1, _TOGETHER // support)
    for lo in range(0, count, size):
        some = slice(lo, lo + size)
        for whole, part in zip(made, _tables(values, cells[some]), strict=True):
            whole[some] = part
    kinds, last, reach, deviation = (one.reshape(arms, clients) for one in made[:4])
    rise, shares, logs, upto = (one.reshape(arms, clients, others) for one in made[4:])
    origin = values[(weights > 0).any(axis=0).argmax(axis=1)]
    origin = np.full_like(origin, origin.min()) if one_origin else origin
    varies = deviation[deviation > 0]
    return FiniteRewards(
        kinds,
        np.vstack([last - origin, origin]),
        rise,
        shares,
        logs,
        upto,
        reach,
        float(varies.min()) if len(varies) else 1.0,
    )


def _tables(values: Floats, weights: Floats) -> tuple[Any, ...]:
    """Make the tables of some cells with these weights, (cells, V).

    Return what `FiniteRewards` calls kinds; the last value; reach; the standard deviation; rise,
    shares, logs and upto.
    """
    support = weights.shape[1]
    order = np.argsort(weights, axis=1, kind="stable")  # first the values that a cell never pays
    unpaid = np.count_nonzero(weights == 0, axis=1)[:, None]
    sums = np.cumsum(np.take_along_axis(weights, order, 1)[:, ::-1], axis=1)[:, ::-1]
    # the cell's own values begin each row; what follows them is not read
    place = np.minimum(unpaid + np.arange(support), support - 1)
    own = np.take_along_axis(order, place, 1)
    weight, left = np.take_along_axis(weights, own, 1), np.take_along_axis(sums, place, 1)
    kinds = support - 1 - unpaid
    counted = np.arange(support - 1) < kinds
    paid = values[own]
    away = paid - paid[:, -1:]
    shares = np.where(counted, (weight / left)[:, :-1], 0.0)
    share = np.where(np.arange(support) <= kinds, weight / left[:, :1], 0.0)
    # cumulative weights from the last own value on
    backwards = np.maximum(kinds - np.arange(support - 1), 0)
    reached = np.cumsum(np.take_along_axis(share, backwards, 1), axis=1) * 2.0**64
    most = np.uint64(2**64 - 1)
    words = np.where(reached < 2.0**64, reached, 0.0).astype(np.uint64)
    return (
        kinds[:, 0],
        paid[:, -1],
        paid.max(axis=1) - paid.min(axis=1),
        np.sqrt((share * (away - (share * away).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)),
        np.where(counted, away[:, :-1], 0.0),
        shares,
        np.log1p(-np.minimum(shares, 1.0 - shares)),
        np.where(counted, np.where(reached < 2.0**64, words, most), np.uint64(0)),
    )


@hooks.leaf.of(FiniteRewards)
def _leaf(rewards):
    return LEAF


@hooks.noise_floor.of(FiniteRewards)
def _noise_floor(rewards):
    return rewards.noise


@hooks.left_out.of(FiniteRewards)
def _left_out(rewards, m):
    return rewards.base[rewards.base.shape[0] - 1, m]


@hooks.certificate_bound.of(FiniteRewards)
def _certificate_bound(rewards, memory, scope, walks, tree, depth):
    return _measure(rewards, memory, scope, tree.frame, tree.drawn[depth], tree.variance, depth)


@hooks.certified.of(FiniteRewards)
def _certified(rewards, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return stays_below(d_a, d_b, least, slack, variance)


@hooks.settle_few.of(FiniteRewards)
def _settle_few(rewards, memory, scope, walks, tree, schedules, radius, found):
    a, b = tree.frame[found.depth, A], tree.frame[found.depth, B]
    if found.pairs > MOST_PAIRS or b - a < LEAF or b > schedules.times[0, LAST]:
        return False
    settle_pairs(rewards, memory, scope, walks, tree, schedules, radius, found)
    return True


@hooks.walk_value.of(FiniteRewards)
def _walk_value(rewards, memory, address):
    return _value_at(rewards, memory, address)


@inner
def _value_at(rewards, memory, address):
    """Return X(n), less the origin, from nothing but its address."""
    client, arm = address[2], address[3]
    return count_walk_value(
        address,
        rewards.kinds[arm, client],
        rewards.rise[arm, client],
        (rewards.shares[arm, client], rewards.logs[arm, client], rewards.upto[arm, client]),
        rewards.base[arm, client],
        memory.single,
        memory.steps,
    )


@hooks.walk_value_later.of(FiniteRewards)
def _walk_value_later(rewards, memory, address, kept, place):
    """Keep the spine, most of whose draws are binomial: rounds on `movielens` take half the time.

    Its nodes up to n would else be drawn again in every round.
    """
    client, arm = address[2], address[3]
    x = later_count_walk_value(
        address,
        rewards.kinds[arm, client],
        rewards.rise[arm, client],
        (rewards.shares[arm, client], rewards.logs[arm, client], rewards.upto[arm, client]),
        rewards.base[arm, client],
        memory.single,
        memory.steps,
        kept[place, arm, client],
    )
    return x + hooks.left_out(rewards, client) * float(address[4])


@hooks.value_inside.of(FiniteRewards)
def _value_inside(rewards, memory, scope, walks, k, n, level):
    return _value_at(rewards, memory, (scope.seed, scope.trial, scope.lo, k, n))


@hooks.extend_spine.of(FiniteRewards)
def _extend_spine(rewards, memory, scope, walks, tree, level):
    """Draw the counts of a pass's next spine node, and what is missing below it."""
    drawn, count = tree.drawn[0], tree.frame[0, DRAWN]
    counts, value, known, made = memory.counts, walks.value, walks.known, memory.made
    seed, trial, weights = np.uint64(scope.seed), np.uint64(scope.trial), scope.weights
    if memory.stamp[0] != seed or memory.stamp[1] != trial:
        memory.stamp[0], memory.stamp[1] = seed, trial
        fill(made, 0)
    for i in range(count):
        k = np.int64(drawn[i])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[k, m] == 0.0:
                continue
            kinds = rewards.kinds[k, m]
            if kinds > 0:  # counted as if no other job had drawn
                walks.work[1] += larger(level + 1 - known[k, m], 0)
            for t in range(made[k, m], level + 1):
                if kinds > 0:
                    # slot ORIGIN holds no rewards, ever
                    before, half = (ORIGIN, 1) if t == 0 else (t - 1, 1 << (t - 1))
                    address = (scope.seed, scope.trial, m, k, np.int64(1) << t)
                    extending = rewards.shares[k, m], rewards.logs[k, m], rewards.upto[k, m]
                    extend_cell(
                        counts[before, m, k], extending, kinds, half, address, counts[t, m, k]
                    )
                value[t, k, m] = weigh(
                    counts[t, m, k], kinds, rewards.rise[k, m], rewards.base[k, m], np.int64(1) << t
                )
            known[k, m] = larger(known[k, m], level + 1)
            made[k, m] = larger(made[k, m], level + 1)
            total = add_client(weights[k], total, m, value[level, k, m])
        walks.total[level, k] = total


@hooks.split_interval.of(FiniteRewards)
def _split_interval(rewards, memory, scope, walks, tree, depth):
    """Draw the counts in the middle of the interval at `depth`.

    The middle shares its block of words with the middles of the two halves: the first of them
    makes the block, and `words` keeps the rest (see `gaussian`).
    """
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    counts, words, weights = memory.counts, memory.words, scope.weights
    slot, left, right = MIDDLE + depth, frame[depth, LEFT], frame[depth, RIGHT]
    a, half = frame[depth, A], (frame[depth, B] - frame[depth, A]) >> 1
    comes_first = not is_power_of_four(half)
    draws = 0
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[j])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[k, m] == 0.0:
                continue
            kinds = rewards.kinds[k, m]
            address = (scope.seed, scope.trial, m, k, a + half)
            if kinds == 1:
                if comes_first:
                    w1, word, w3, rest = quarter_words(scope.seed, scope.trial, m, k, a, half >> 1)
                    words[depth, k, m, 0], words[depth, k, m, 1] = w1, w3
                    words[depth, k, m, 2] = rest
                    spare = spare_bits(rest, np.int64(1))
                elif depth == 0:  # a third quarter point: the first two are on the spine
                    _, _, word, rest = quarter_words(
                        scope.seed, scope.trial, m, k, np.int64(0), half
                    )
                    spare = spare_bits(rest, np.int64(2))
                else:
                    is_right = frame[depth, IS_RIGHT]
                    word = words[depth - 1, k, m, is_right]
                    spare = spare_bits(words[depth - 1, k, m, 2], 2 * is_right)
                before = counts[left, m, k, 0]
                counts[slot, m, k, 0] = before + random_half(
                    counts[right, m, k, 0] - before, half, word, spare, address
                )
                draws += 1
            elif kinds > 1:
                split_cell(
                    counts[left, m, k],
                    counts[right, m, k],
                    kinds,
                    half,
                    address,
                    counts[slot, m, k],
                )
                draws += 1
            x = weigh(counts[slot, m, k], kinds, rewards.rise[k, m], rewards.base[k, m], a + half)
            walks.value[slot, k, m] = x
            total = add_client(weights[k], total, m, x)
        walks.total[slot, k] = total
    walks.work[1] += draws


@hooks.walk_interval.of(FiniteRewards)
def _walk_interval(rewards, memory, scope, walks, tree, depth):
    """Shuffle the rewards of the interval at `depth` and add them up, step by step."""
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    counts, steps, weights = memory.counts, memory.steps, scope.weights
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[j])
        for i in range(1, length):
            walks.total[STEP + i, k] = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[k, m] == 0.0:
                continue
            kinds = rewards.kinds[k, m]
            shuffle_steps(
                (counts[left, m, k], counts[right, m, k]),
                kinds,
                rewards.rise[k, m],
                rewards.base[k, m],
                memory.rest,
                (a, length),
                (scope.seed, scope.trial, m, k, a + length // 2),
                steps,
            )
            if kinds > 0:
                walks.work[1] += length - 1
            for i in range(1, length):
                walks.value[STEP + i, k, m] = steps[i]
                walks.total[STEP + i, k] = add_client(
                    weights[k], walks.total[STEP + i, k], m, steps[i]
                )


@inner
def _measure(rewards, memory, scope, frame, drawn, spread, depth):
    """Choose, for `certificate_bound`, the bound of `permuted` that is best for the widest arms.

    The numbers that it needs of each arm are written to ``spread``.
    """
    counts, sums = memory.counts, memory.sums
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    length = frame[depth, B] - frame[depth, A]
    reach = widest_squares = widest_ranges = widest_distances = 0.0
    for j in range(frame[depth, DRAWN]):
        k = np.int64(drawn[j])
        squares = ranges = distances = 0.0
        for m in range(scope.lo, scope.hi):
            kinds = rewards.kinds[k, m]
            if kinds > 0 and scope.weights[k, m] > 0.0:
                square, distance = deviations(
                    counts[left, m, k], counts[right, m, k], kinds, rewards.rise[k, m], length
                )
                if distance > 0.0:
                    weight = scope.weights[k, m]
                    own = weight * rewards.reach[k, m]
                    squares += weight * weight * square
                    distances += weight * distance
                    ranges += 0.25 * own * own
                    reach = larger(reach, own)
        sums[k, SQUARES], sums[k, RANGES], sums[k, DISTANCES] = squares, ranges, distances
        widest_squares = larger(widest_squares, squares)
        widest_ranges = larger(widest_ranges, ranges)
        widest_distances = larger(widest_distances, distances)
    form, least, slack = choose_bound(
        length, 2.0 * widest_squares, reach, 2.0 * widest_ranges, 2.0 * widest_distances
    )
    for j in range(frame[depth, DRAWN]):
        spread[drawn[j]] = sums[drawn[j], form]
    return least, slack
