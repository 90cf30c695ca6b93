"""The functions and objects of users: `simulate` and `Result`, `sweep` and `Sweep`."""
