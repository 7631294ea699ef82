"""
What reports, comparisons and explanations show, and in which order.

    results.py      a report or comparison in the form that is asked for
    report.py       a report: all of it, one look, the summary for a merge request
    comparison.py   a comparison of sets, as a whole and in one look
    published.py    records beside a published table
    shared.py       the tables of rows and of two sides, doubts in a line
    pages.py        the pages of all of them, and of explanations
"""
