"""Jobs, which run trials; rows, replays, and the reference implementation."""
