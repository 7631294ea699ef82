"""Which change did it: search commits, patches or settings for one that costs time."""
