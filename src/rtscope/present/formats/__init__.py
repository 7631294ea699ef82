"""
Renderers of reports: no decisions, no arithmetic.

    brief.py           the first look at a terminal: 22 lines of 80 columns
    text.py            the whole report for a terminal or a pipe
    html.py            pages of reports, comparisons, explanations
    markdown.py        Markdown for a wiki or a merge request
    data.py            JSON, and the main table as CSV
    audit.py           outcomes of an audit, changed settings
    taskstatistics.py  task statistics of programs, as text and JSON
"""
