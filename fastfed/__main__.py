"""`python -m fastfed` is `fastfed`."""

from fastfed.cli import main

main()
