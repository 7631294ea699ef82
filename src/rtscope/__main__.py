"""`python -m rtscope` is `rtscope`."""

from rtscope.cli.main import main

main()
