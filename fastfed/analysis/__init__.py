"""Statistics of trials: summaries, comparisons, the cheapest schedule, checks and verdicts."""
