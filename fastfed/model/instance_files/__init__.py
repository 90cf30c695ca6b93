"""Files and names of instances: one file a format, and `load`, which chooses among them."""
