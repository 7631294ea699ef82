"""
Directories of records: found, held, opened again, and told what came of each run.

    place.py    what it holds by its document; made, held, gone on with
    records.py  records of a place: found, opened, written; the state of each run
    journal.py  lists and lines beside them: what was tried, and why it has no result
"""
