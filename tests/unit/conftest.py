"""What holds for every test of a unit."""

from hypothesis import settings

# How long an example takes says more about the machine than about the program.
settings.register_profile("rtscope", deadline=None)
settings.load_profile("rtscope")
