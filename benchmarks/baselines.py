"""Baselines that a user would write instead: FedElim on Gaussian rewards of variance 1, stepped.

Each function runs trials of `fedelim` and returns the pulls of each. `literal` is Algorithm 1 in
plain Python. `numpy_batch` steps all trials together with masks. `numba_plain` is the obvious
compiled loop with NumPy's own normals. `numba_stepper` is the same loop with a fast generator
(xoshiro256++ of Blackman and Vigna) and a ziggurat: about what careful C does.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from fastfed import Instance
from fastfed.kernels.random.normal import _EDGE, _R, _RATIO
from fastfed.model.schedules import FedElim
from fastfed.simulation import reference


def literal(means: np.ndarray, delta: float, trials: int, seed: int = 0) -> np.ndarray:
    instance, rng = Instance(means), np.random.default_rng(seed)
    rewards = reference.independent_rewards(instance, rng)
    return np.array(
        [reference.fedelim(instance, FedElim(), delta, rewards).pulls.sum() for _ in range(trials)]
    )


def numpy_batch(means: np.ndarray, delta: float, trials: int, seed: int = 0) -> np.ndarray:
    arms, clients = means.shape
    rng = np.random.default_rng(seed)
    sums = np.zeros((trials, arms, clients))
    local = np.ones((trials, arms, clients), bool)
    server = np.ones((trials, arms), bool)
    pulls = np.zeros(trials, np.int64)
    n = 0
    while local.any() or server.any():
        n += 1
        active = local | server[:, :, None]
        sums += np.where(active, means + rng.standard_normal(sums.shape), 0.0)
        pulls += active.sum((1, 2))
        radius = math.sqrt(2 * math.log(8 * arms * clients * n * n / delta) / n)
        average = np.where(local, sums / n, -np.inf)
        best = np.where(local.any(1, keepdims=True), average.max(1, keepdims=True), 0.0)
        local &= best - average < 2 * radius
        local &= local.sum(1, keepdims=True) > 1
        if n & (n - 1) == 0:
            radius = math.sqrt(2 * math.log(8 * arms * n * n / delta) / (clients * n))
            overall = np.where(server, sums.mean(2) / n, -np.inf)
            best = np.where(server.any(1, keepdims=True), overall.max(1, keepdims=True), 0.0)
            server &= best - overall < 2 * radius
            server &= server.sum(1, keepdims=True) > 1
    return pulls


@njit(cache=True)
def numba_plain(means, delta, trials, seed=0):
    np.random.seed(seed)  # noqa: NPY002  (what its user would write)
    arms, clients = means.shape
    out = np.zeros(trials, np.int64)
    for t in range(trials):
        sums = np.zeros((arms, clients))
        local = np.ones((arms, clients), np.bool_)
        server = np.ones(arms, np.bool_)
        n, next_time, pulls = 0, 1, 0
        while local.any() or server.any():
            n += 1
            radius = math.sqrt(2 * math.log(8 * arms * clients * n * n / delta) / n)
            for m in range(clients):
                best, count = -np.inf, 0
                for k in range(arms):
                    if local[k, m] or server[k]:
                        sums[k, m] += means[k, m] + np.random.standard_normal()  # noqa: NPY002
                        pulls += 1
                        if local[k, m]:
                            best = max(best, sums[k, m] / n)
                for k in range(arms):
                    if local[k, m] and best - sums[k, m] / n >= 2 * radius:
                        local[k, m] = False
                    count += local[k, m]
                if count == 1:
                    local[:, m] = False
            if n == next_time:
                next_time *= 2
                radius = math.sqrt(2 * math.log(8 * arms * n * n / delta) / (clients * n))
                overall = sums.sum(axis=1) / clients / n
                best, count = -np.inf, 0
                for k in range(arms):
                    if server[k]:
                        best = max(best, overall[k])
                for k in range(arms):
                    if server[k] and best - overall[k] >= 2 * radius:
                        server[k] = False
                    count += server[k]
                if count == 1:
                    server[:] = False
        out[t] = pulls
    return out


@njit
def _next(state):
    mixed = state[0] + state[3]
    result = ((mixed << uint64(23)) | (mixed >> uint64(41))) + state[0]
    t = state[1] << uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = (state[3] << uint64(45)) | (state[3] >> uint64(19))
    return result


@njit
def _unit(state):
    return (np.float64(_next(state) >> uint64(11)) + 0.5) * 2.0**-53


@njit
def _gauss(state):
    while True:
        word = _next(state)
        layer = np.int64(word & uint64(255))
        place = np.float64(np.int64(word) >> 11) * 2.0**-52
        x = place * _EDGE[layer]
        if abs(place) < _RATIO[layer]:
            return x
        if layer == 0:
            while True:
                x = -math.log(_unit(state)) / _R
                if -2.0 * math.log(_unit(state)) >= x * x:
                    return -(_R + x) if place < 0.0 else _R + x
        outer = math.exp(-0.5 * (_EDGE[layer] ** 2 - x * x))
        inner = math.exp(-0.5 * (_EDGE[layer + 1] ** 2 - x * x))
        if outer + _unit(state) * (inner - outer) < 1.0:
            return x


@njit(cache=True, error_model="numpy")
def numba_stepper(means, delta, trials, seed=0):
    arms, clients = means.shape
    state = np.array([1, 2, 3, 4 + seed], np.uint64)
    for _ in range(100):
        _next(state)
    out = np.zeros(trials, np.int64)
    sums = np.zeros((arms, clients))
    local = np.zeros((arms, clients), np.bool_)
    server = np.zeros(arms, np.bool_)
    total = np.zeros(arms)
    for t in range(trials):
        sums[:, :] = 0.0
        local[:, :] = True
        server[:] = True
        n, next_time, pulls, open_clients, server_open = 0, 1, 0, clients, True
        while open_clients > 0 or server_open:
            n += 1
            bar = 0.0
            if open_clients > 0:
                bar = 2.0 * math.sqrt(2.0 * n * math.log(8.0 * arms * clients * n * n / delta))
            for m in range(clients):
                best, alive = -np.inf, 0
                for k in range(arms):
                    if local[k, m] or server[k]:
                        sums[k, m] += means[k, m] + _gauss(state)
                        pulls += 1
                        if local[k, m]:
                            alive += 1
                            best = max(best, sums[k, m])
                if alive > 1:
                    for k in range(arms):
                        if local[k, m] and best - sums[k, m] >= bar:
                            local[k, m] = False
                            alive -= 1
                    if alive == 1:
                        local[:, m] = False
                        open_clients -= 1
            if n == next_time:
                next_time *= 2
                alive, best = 0, -np.inf
                for k in range(arms):
                    if server[k]:
                        alive += 1
                        total[k] = sums[k].sum()
                        best = max(best, total[k])
                if alive > 1:
                    bar = 2.0 * math.sqrt(2.0 * clients * n * math.log(8.0 * arms * n * n / delta))
                    for k in range(arms):
                        if server[k] and best - total[k] >= bar:
                            server[k] = False
                            alive -= 1
                    if alive == 1:
                        server[:] = False
                        server_open = False
        out[t] = pulls
    return out
