"""What a user holds: `simulate` and its `Result`, `sweep` and its folder."""
