"""T* by general solvers: dense constraints, every half-space minimised on its own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import kl_div, rel_entr


def pairs(means, questions):
    """Yield a question's weights, an arm that could overtake, and the best arm."""
    for weights in questions:
        values = means @ weights
        best = int(np.argmax(values))
        yield from ((weights, k, best) for k in range(len(values)) if k != best)


def gaussian(means, variances, questions):
    """Find T* for Gaussian rewards by SLSQP, in ln u and with dense constraints."""
    rows = []
    for weights, k, best in pairs(means, questions):
        row = np.zeros(means.shape)
        row[k] = row[best] = weights**2
        rows.append((row * variances).ravel() * 2 / (weights @ (means[best] - means[k])) ** 2)
    dense = np.array(rows)
    inside = dense.any(axis=0)
    dense = dense[:, inside]
    start = -np.log(dense.sum(axis=1).max()) * np.ones(dense.shape[1])
    scale = np.exp(-start).sum()
    found = minimize(
        lambda z: np.exp(-z).sum() / scale,
        start,
        jac=lambda z: -np.exp(-z) / scale,
        constraints={
            "type": "ineq",
            "fun": lambda z: 1 - dense @ np.exp(z),
            "jac": lambda z: -dense * np.exp(z),
        },
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    u = np.exp(found.x) / max(1.0, (dense @ np.exp(found.x)).max())
    return float((1 / u).sum())


def bernoulli_kl(mean, other):
    """Return the divergence between two Bernoulli distributions."""
    return rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)


def poisson_kl(mean, other):
    """Return the divergence between two Poisson distributions."""
    return kl_div(mean, other)


def cheapest(means, pulls, kl, weights, k, best, top):
    """Return cost and divergences of the cheapest alternative in which k reaches the best arm."""
    asked = np.flatnonzero(weights)
    here = means[np.ix_([k, best], asked)]
    w = pulls[np.ix_([k, best], asked)]
    signs = np.array([[1.0], [-1.0]]) * weights[asked]
    middle = (here + here[::-1]) / 2
    found = minimize(
        lambda x: (w * kl(here, x.reshape(here.shape))).sum(),
        middle.ravel(),
        bounds=[(1e-9, top)] * middle.size,
        constraints={
            "type": "eq",
            "fun": lambda x: (signs * x.reshape(here.shape)).sum(),
            "jac": lambda x: signs.ravel(),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    divergences = np.zeros(means.shape)
    divergences[np.ix_([k, best], asked)] = kl(here, found.x.reshape(here.shape))
    return float(found.fun), divergences


def family(means, kl, questions, start, top):
    """Find T* for another family by SLSQP over pulls, its constraints by `cheapest`."""
    rows = list(pairs(means, questions))

    def values(z):
        pulls = np.exp(z).reshape(means.shape)
        return [cheapest(means, pulls, kl, *row, top) for row in rows]

    scale = start.sum()
    found = minimize(
        lambda z: np.exp(z).sum() / scale,
        np.log(start.ravel()),
        jac=lambda z: np.exp(z) / scale,
        constraints={
            "type": "ineq",
            "fun": lambda z: np.array([cost for cost, _ in values(z)]) - 1,
            "jac": lambda z: np.array([d.ravel() * np.exp(z) for _, d in values(z)]),
        },
        method="SLSQP",
        options={"maxiter": 60, "ftol": 1e-9},
    )
    least = min(cost for cost, _ in values(found.x))
    return float(np.exp(found.x).sum() / least)
