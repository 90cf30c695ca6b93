"""LUCB at communication rounds, written from the page "Bring your own algorithm" alone."""

import numpy as np

import fastfed as ff


def leader_and_challenger(means, widths):
    """Return the arm with the largest mean, and the rival with the largest upper bound."""
    leader = np.argmax(means)
    challenger = -1
    for k in range(len(means)):
        if k != leader and (
            challenger < 0 or means[k] + widths[k] > means[challenger] + widths[challenger]
        ):
            challenger = k
    return leader, challenger


class LUCB(ff.Algorithm):
    """Pull the leader and the challenger of every open question."""

    family = "lucb"
    parameters = {"factor": 0.5}  # noqa: RUF012

    @staticmethod
    def decide(seen, answer):
        arms, clients = seen.counts.shape
        if seen.round == 0:
            answer.targets[:] = 1
            return
        means, widths = np.zeros((clients + 1, arms)), np.zeros((clients + 1, arms))
        for k in range(arms):
            for m in range(clients):
                n = float(seen.counts[k, m])
                means[m, k] = seen.sums[k, m] / n
                widths[m, k] = ff.alpha(seen.local_radius, n)
                heard = float(seen.received_counts[k, m])
                means[clients, k] += seen.weights[m] * seen.received_sums[k, m] / heard
                widths[clients, k] += seen.weights[m] * ff.alpha(seen.local_radius, heard)
        answer.sent[:] = False
        for q in range(clients + 1):
            declared = answer.global_arm[0] if q == clients else answer.local_arms[q]
            if declared != -1:
                continue
            i, j = leader_and_challenger(means[q], widths[q])
            if means[q, i] - widths[q, i] > means[q, j] + widths[q, j]:
                if q == clients:
                    answer.global_arm[0] = i
                else:
                    answer.local_arms[q] = i
                continue
            for k in (i, j):
                for m in range(clients):
                    if q in (m, clients):
                        new = max(1, int(seen.options.factor * seen.counts[k, m]))
                        answer.targets[k, m] = seen.counts[k, m] + new
                        answer.sent[k, m] = answer.sent[k, m] or q == clients
