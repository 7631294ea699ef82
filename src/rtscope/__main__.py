"""`python -m rtscope` is `rtscope`."""

from rtscope.cli.start import main

main()
