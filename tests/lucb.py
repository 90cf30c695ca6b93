"""LUCB at communication rounds, written from the page "Bring your own algorithm" alone."""

import numpy as np

import fastfed as ff


def leader_and_challenger(means, widths):
    """Return the arm with the largest mean, and the rival with the largest upper bound."""
    leader = np.argmax(means)
    challenger = 0 if leader > 0 else 1
    for k in range(len(means)):
        if k != leader and means[k] + widths[k] > means[challenger] + widths[challenger]:
            challenger = k
    return leader, challenger


class LUCB(ff.Algorithm):
    """Pull the leader and the challenger of every open question."""

    family = "lucb"
    parameters = {"factor": 0.5}  # noqa: RUF012

    def prepare(self, setting):
        if setting.radii.client.pairs:
            raise ff.InputError("algorithm lucb: counts differ; use a radius per arm, as mixture")
        return ()

    @staticmethod
    def decide(seen, answer):
        arms, clients = seen.counts.shape
        if seen.round == 0:
            answer.targets[:] = 1
            return
        means, widths = np.zeros((clients + 1, arms)), np.zeros((clients + 1, arms))
        for k in range(arms):
            for m in range(clients):
                n, received = float(seen.counts[k, m]), float(seen.received_counts[k, m])
                means[m, k] = seen.sums[k, m] / n
                widths[m, k] = ff.alpha(seen.local_radius, n)
                means[clients, k] += seen.weights[m] * seen.received_sums[k, m] / received
                widths[clients, k] += seen.weights[m] * ff.alpha(seen.local_radius, received)
        answer.sent[:] = False
        for q in range(clients + 1):
            declared = answer.global_arm if q == clients else answer.local_arms[q : q + 1]
            if declared[0] != -1:
                continue
            i, j = leader_and_challenger(means[q], widths[q])
            if means[q, i] - widths[q, i] > means[q, j] + widths[q, j]:
                declared[0] = i
                continue
            for m in range(clients):
                if q in (m, clients):
                    least = min(seen.counts[i, m], seen.counts[j, m])
                    target = least + max(1, int(seen.options.factor * least))
                    for k in (i, j):
                        answer.targets[k, m] = max(answer.targets[k, m], target)
                        answer.sent[k, m] = answer.sent[k, m] or q == clients
