"""Recorded paths of two CPUs that run `plugin/tests/guest.S`: two worst, a window."""

import gzip
from pathlib import Path

GUEST = gzip.decompress((Path(__file__).parent / "guest.trace.gz").read_bytes())
"""A stream of version 2. The first path is whole, the second one was cut."""
