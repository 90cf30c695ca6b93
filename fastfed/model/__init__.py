"""Everything that a user chooses, made and checked: instances, schedules, radii, goals, uplinks."""
