"""
The worst that can be found: starts of one program, each directed by the last worst.

    levers.py        what may change from start to start (pure)
    trials.py        starts that were tried, and what each showed (pure)
    meetings.py      draws settings in which threads meet (pure)
    proposals.py     the next starts to try (pure)
    seen.py          levers of a program, and what a start showed (pure)
    kept.py          the rounds of searches, in the cache: one that was ended goes on
    rounds.py        rounds of starts, made or taken from there
    searching.py     the starts on a board, and the worst again alone
    found.py         what a search found, for a terminal, a page and JSON (pure)
"""
