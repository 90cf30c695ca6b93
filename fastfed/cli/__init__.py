"""The command line: commands, their options, and their shared parts."""
