"""The theorems as numbers, lower bounds, and true error probabilities."""
