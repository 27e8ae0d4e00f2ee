"""`python -m streams.cli`."""

from streams.cli.entry import main

main()
