"""
`rtscope history`: an index over result directories, and what it shows over time.

    indexing.py    `history index`: reads what is new below folders
    tags.py        `history tag`: words beside the runs of a result
    listing.py     `history list`: runs with figures
    show.py, showtext.py    `history show`: latencies over time, and its words
    showpage.py, showcharts.py  its page
    timeline.py    nights in order, with what changed from one to the next
    shifts.py, changepoints.py  since when a series is on another level
    check.py, checktext.py  `history check`: is it worse, and its words
    judge.py       the test of the newest nights against those before
    questions.py   which nights are compared with which
    reading.py     records read, by processes if many
    sqlquery.py, asking.py  `history query`: SQL that reads, and its answer
    canned.py, queries.toml  queries with names, and texts of tables, for Datasette
    parquet.py     `history parquet`: the index as Parquet files
    thin.py, thinning.py    `history thin`: frees disk of old nights
    schedule.py    `history schedule`: a timer and services of systemd
    series.py      nights of one machine under one load, and their figures
    database.py    the index, an SQLite file
    entries.py     what it keeps of a run
    histograms.py  all latencies of a run, packed
    query.py       runs by filters
"""
