"""`python -m streams.cli`."""

from streams.cli.main import main

main()
