"""Walks of rewards with finite support: how often each value has come, exactly.

A cell (an arm at a client) has its own values, those that it pays at all. They are ordered by their
weight, the rarest first. The last one is never counted, because the counts add up to the number of
steps: a cell with two values has one count, a cell with one value has none and draws nothing.

    counts at 2 half = counts at half + a multinomial draw of `half` rewards               (extend)
    counts at middle = counts at left + a random half of what lies between the ends        (split)

An interval of LEAF steps or fewer is not split: the order of its known rewards is a uniformly
random permutation, and it is drawn as it is, reward by reward.

How a split draws. Two values: one half (`halves`); its word comes from a block that serves the
middle of an interval and the middles of its two halves, as in `normal`. More values, up to 256
steps: a random set of half the places in the interval, as the ones of up to four words. It takes
random bits and flips random ones until half of them are set: sets of the same size have the same
probability from beginning to end. What a value gets is the number of ones in its range of places.
More steps: value by value, the rarest first, each `near_half` of what is left. So the halves of the
first, small, values hardly disturb the balance for the last, large, ones.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.random.binomial import binomial_from
from fastfed.kernels.random.halves import half as random_half
from fastfed.kernels.random.halves import near_half, ones
from fastfed.kernels.random.normal import is_power_of_four, quarter_words
from fastfed.kernels.random.philox import multiply_wide
from fastfed.kernels.random.words import spare_bits, words_at

LEAF = 4
_PICKS = 4  # from one word: the low half of a product serves as the next word, 2^-54 off at worst
_PLACES = 256  # the longest interval that is split by a set of places
_WORD = 64  # places of a word
# streams of words that belong to no single value
_BY_PLACES, _BY_VALUES = np.int64(1 << 30), np.int64(1 << 31)
_ONE_BY_ONE = 8  # so many rewards of three values or more are drawn one by one


@inlined
def weigh(counts, kinds, rise, base, n):
    """Return the sum of the first n rewards."""
    total = base * float(n)
    for v in range(kinds):
        total += rise[v] * float(counts[v])
    return total


@inner
def extend_cell(before, extending, kinds, half, address, out):
    """Set out to before plus the counts of each value in `half` further rewards.

    They are drawn by binomial variates, value by value, or reward by reward if they are few.
    ``extending`` is (shares, logs, upto) of the cell: see `finite.FiniteRewards`.
    """
    shares, logs, upto = extending
    if kinds > 1 and half <= _ONE_BY_ONE:
        _add_rewards(before, upto, kinds, half, address, out)
        return
    left = np.int64(half)
    words = (uint64(0), uint64(0), uint64(0), uint64(0))
    for v in range(kinds):
        place = v % 3
        if place == 0:  # three values share a block: see `random.words`
            words = words_at(address, _BY_VALUES + v // 3, np.int64(1))
        count = binomial_from(
            left, shares[v], logs[v], (words[place], spare_bits(words[3], place)), address, v
        )
        out[v] = before[v] + count
        left -= count


@inner
def _add_rewards(before, upto, kinds, half, address, out):
    """Add rewards one by one; a word decides the value of each.

    The value is the last if the word is below upto[0], the one before if it is below upto[1], and
    so on.
    """
    for v in range(kinds):
        out[v] = before[v]
    words = (uint64(0), uint64(0), uint64(0), uint64(0))
    for i in range(half):
        if i & 3 == 0:
            words = words_at(address, _BY_PLACES, 1 + (i >> 2))
        word = words[i & 3]
        passed = np.int64(0)  # no branch: values come in any order
        for j in range(kinds):
            passed += np.int64(word >= upto[j])
        out[smaller(kinds - passed, kinds - 1)] += np.int64(passed > 0)


@inlined
def quarter_word(address, a, half):
    """Return the word and the spare bits of the middle of (a, a + 2 half], from its address."""
    seed, trial, client, arm, n = address
    if is_power_of_four(half):  # a first or third quarter point of a longer interval
        begin = n & -(4 * half)
        w1, _, w3, rest = quarter_words(seed, trial, client, arm, begin, half)
        if n - begin == half:
            return w1, spare_bits(rest, np.int64(0))
        return w3, spare_bits(rest, np.int64(2))
    _, w2, _, rest = quarter_words(seed, trial, client, arm, a, half >> 1)
    return w2, spare_bits(rest, np.int64(1))


@inner
def split_cell(left, right, kinds, half, address, out):
    """Set out to the counts in the middle of an interval of 2 half steps.

    left and right are the counts at its ends. There are three values or more.
    """
    if 2 * half <= _PLACES:
        _split_by_places(left, right, kinds, half, address, out)
        return
    items, draws = np.int64(2 * half), np.int64(half)
    words = (uint64(0), uint64(0), uint64(0), uint64(0))
    for v in range(kinds):
        place = v % 3
        if place == 0:
            words = words_at(address, _BY_VALUES + v // 3, np.int64(1))
        marked = right[v] - left[v]
        count = near_half(
            marked, items, draws, words[place], spare_bits(words[3], place), address, v
        )
        out[v] = left[v] + count
        items -= marked
        draws -= count


@inner
def _split_by_places(left, right, kinds, half, address, out):
    words = words_at(address, _BY_PLACES, np.int64(1))
    if 2 * half <= _WORD:
        _split_by_one_word(left, right, kinds, half, address, words, out)
        return
    if 2 * half == 2 * _WORD:
        chosen, word = (words[0], words[1], uint64(0), uint64(0)), 2
    else:
        chosen, word = words, 4
    chosen = _balanced(chosen, words, word, half, address)
    current, later, third, fourth = chosen
    room = np.int64(_WORD)  # places of the current word that no value has taken yet
    for v in range(kinds):
        marked = right[v] - left[v]
        count = np.int64(0)
        while marked >= room:  # the value takes all that is left of the word
            count += ones(current)
            marked -= room
            current, later, third, fourth, room = later, third, fourth, uint64(0), np.int64(_WORD)
        count += ones(current & ((uint64(1) << uint64(marked)) - uint64(1)))
        current >>= uint64(marked)
        room -= marked
        out[v] = left[v] + count


@inlined
def _split_by_one_word(left, right, kinds, half, address, words, out):
    """Split an interval of up to 64 steps: the same as below, but all places are in one word."""
    current = words[0] & (~uint64(0) >> uint64(_WORD - 2 * half))
    missing = half - ones(current)
    excess = uint64(missing < 0)
    missing = abs(missing)
    word, block, used, picks = np.int64(1), np.int64(1), 0, uint64(0)
    while missing != 0:
        if used == 0:
            picks, word, block, words = _next_word(words, word, block, address)
            used = 8
        place = picks & uint64(2 * half - 1)
        flip = ((current >> place) ^ excess ^ uint64(1)) & uint64(1)
        current ^= flip << place
        missing -= np.int64(flip)
        picks >>= uint64(8)
        used -= 1
    for v in range(kinds):
        marked = right[v] - left[v]
        if marked == _WORD:  # too many for a shift
            out[v] = left[v] + half
        else:
            below = (uint64(1) << uint64(marked)) - uint64(1)
            out[v] = left[v] + ones(current & below)
            current >>= uint64(marked)


@inlined
def _next_word(words, word, block, address):
    """Return the next word with random places, and where the one after it is."""
    if word == 4:
        word = 0
        block += 1
        words = words_at(address, _BY_PLACES, block)
    return words[word], word + 1, block, words


@inlined
def _balanced(chosen, words, word, half, address):
    """Return four words in which exactly half of the 2 half places are set.

    Random words have as many places flipped as that takes; the picks come from the words that
    follow.
    """
    c0, c1, c2, c3 = chosen
    missing = half - (ones(c0) + ones(c1) + ones(c2) + ones(c3))
    excess = uint64(missing < 0)  # there are too many ones
    missing = abs(missing)
    block, used, picks = np.int64(1), 0, uint64(0)
    while missing != 0:  # flip a random place, if it is one of the kind that is too frequent
        if used == 0:
            picks, word, block, words = _next_word(words, word, block, address)
            used = 8
        pick = picks & uint64(2 * half - 1)
        which, place = pick >> uint64(6), pick & uint64(63)
        one = c0 if which == 0 else c1 if which == 1 else c2 if which == 2 else c3
        flip = ((one >> place) ^ excess ^ uint64(1)) & uint64(1)  # no branch: about half are
        bit = flip << place
        c0 ^= bit if which == 0 else uint64(0)
        c1 ^= bit if which == 1 else uint64(0)
        c2 ^= bit if which == 2 else uint64(0)
        c3 ^= bit if which == 3 else uint64(0)
        missing -= np.int64(flip)
        picks >>= uint64(8)
        used -= 1
    return c0, c1, c2, c3


@inner
def shuffle_steps(ends, kinds, rise, base, rest, a_and_length, address, steps):
    """Set steps[i] to the sum of the first a + i rewards, i = 1 .. length - 1.

    ``ends`` are the counts at both ends, ``rest`` is scratch.
    """
    left, right = ends
    a, length = a_and_length
    counted = np.int64(0)
    for v in range(kinds):
        rest[v] = right[v] - left[v]
        counted += rest[v]
    total = weigh(left, kinds, rise, base, a)
    words = (uint64(0), uint64(0), uint64(0), uint64(0))
    word = uint64(0)
    drawn = counted > 0
    for i in range(length - 1):
        if drawn:
            if i % (4 * _PICKS) == 0:
                words = words_at(address, np.int64(0), 1 + i // (4 * _PICKS))
            if i % _PICKS == 0:
                word = words[(i // _PICKS) & 3]
            high, word = multiply_wide(word, uint64(length - i))
            pick = np.int64(high)
            if pick < counted:
                counted -= 1
                v = 0
                while pick >= rest[v]:
                    pick -= rest[v]
                    v += 1
                rest[v] -= 1
                total += rise[v]
        total += base
        steps[i + 1] = total


@inlined
def deviations(left, right, kinds, rise, length):
    """Sum the squared distances of an interval's rewards from their mean, and the distances.

    The second sum is over the rewards above the mean, and equals that over those below.
    """
    if kinds == 1:
        count = float(right[0] - left[0])
        apart = count * (float(length) - count) / float(length)
        return apart * rise[0] * rise[0], apart * abs(rise[0])
    return _deviations_of_many(left, right, kinds, rise, length)


@inner
def _deviations_of_many(left, right, kinds, rise, length):
    mean = 0.0
    counted = np.int64(0)
    for v in range(kinds):
        count = right[v] - left[v]
        mean += float(count) * rise[v]
        counted += count
    mean *= 1.0 / float(length)
    others = float(length - counted)
    squares, distances = others * mean * mean, others * abs(mean)
    for v in range(kinds):
        distance = abs(rise[v] - mean)
        away = float(right[v] - left[v]) * distance
        squares += away * distance
        distances += away
    return squares, 0.5 * distances


@inner
def middle_counts(left, right, kinds, half, address, out):
    """Set out to the counts in the middle of an interval of 2 half steps.

    They follow from the counts at its ends and the address of the middle alone.
    """
    if kinds == 1:
        word, spare = quarter_word(address, address[4] - half, half)
        out[0] = left[0] + random_half(right[0] - left[0], half, word, spare, address)
    elif kinds > 1:
        split_cell(left, right, kinds, half, address, out)


@inner
def count_walk_value(address, kinds, rise, extending, base, scratch, steps):
    """Return X(n), n >= 1, from its address (seed, trial, client, arm, n) alone.

    ``extending`` is as for `extend_cell`, scratch (4, V) of int64, steps (LEAF,).
    """
    _first_node(address, kinds, extending, scratch)
    a_b_and_row = _climb(address, kinds, extending, scratch, np.int64(1))
    return _descend(address, kinds, rise, base, scratch, steps, a_b_and_row)


@inner
def later_count_walk_value(address, kinds, rise, extending, base, scratch, steps, kept):
    """Return X(n) as `count_walk_value` does, from the last two spine nodes of an earlier call.

    ``kept`` is (3, V - 1): the step of the second node first, 0 if there is none, and then the
    counts at both. The next call of the same walk finds there what this one leaves.
    """
    b = kept[0, 0]
    if b == 0:
        b = np.int64(1)
        _first_node(address, kinds, extending, scratch)
    else:
        for v in range(kinds):
            scratch[0, v] = kept[1, v]
            scratch[1, v] = kept[2, v]
    a, b, right = _climb(address, kinds, extending, scratch, b)
    kept[0, 0] = b
    for v in range(kinds):
        kept[1, v] = scratch[1 - right, v]
        kept[2, v] = scratch[right, v]
    return _descend(address, kinds, rise, base, scratch, steps, (a, b, right))


@inlined
def _first_node(address, kinds, extending, scratch):
    """Set row 0 to the counts after no step, and row 1 to those after one."""
    seed, trial, client, arm, _ = address
    for v in range(kinds):
        scratch[0, v] = 0
    first = (seed, trial, client, arm, np.int64(1))
    extend_cell(scratch[0], extending, kinds, np.int64(1), first, scratch[1])


@inlined
def _climb(address, kinds, extending, scratch, b):
    """Extend the spine from its node b until it reaches n; return a, b and the row of b.

    Row 1 has the counts at b, and row 0 those at the node before. The last two nodes are left in
    these rows, in either order.
    """
    seed, trial, client, arm, n = address
    a, left, right = b >> 1, 0, 1
    while b < n:
        left, right = right, left
        a, b = b, 2 * b
        extend_cell(
            scratch[left], extending, kinds, a, (seed, trial, client, arm, b), scratch[right]
        )
    return a, b, right


@inlined
def _descend(address, kinds, rise, base, scratch, steps, a_b_and_row):
    """Return X(n) from the counts at the spine nodes a and b, n in (a, b]."""
    seed, trial, client, arm, n = address
    a, b, right = a_b_and_row
    left, middle_row = 1 - right, 2
    while b != n:
        middle = (a + b) // 2
        place = (seed, trial, client, arm, middle)
        if b - a <= LEAF:
            shuffle_steps(
                (scratch[left], scratch[right]),
                kinds,
                rise,
                base,
                scratch[3],
                (a, b - a),
                place,
                steps,
            )
            return steps[n - a]
        middle_counts(
            scratch[left], scratch[right], kinds, (b - a) // 2, place, scratch[middle_row]
        )
        if middle <= n:
            left, middle_row, a = middle_row, left, middle
            if middle == n:
                return weigh(scratch[left], kinds, rise, base, n)
        else:
            right, middle_row, b = middle_row, right, middle
    return weigh(scratch[right], kinds, rise, base, n)
