"""
The content of a report: its sentences and numbers, and their order.

    build.py                 the model of a report
    softchart.py, softvalue.py  the value function of a soft deadline over latencies
    verdicts.py              the verdict on a deadline, and soft values, in words
    findings.py              findings as sentences, worst first; the headline
    rows.py                  rows of the main table; caveats and machines
    sections.py              the section of one load
    wakeparts.py             the parts of all wake-ups: table and chart
    workers.py               processes of each load: proof that it ran
    charts.py                the numbers that charts draw
    overtime.py              those of charts over time
    wakeups.py               the strokes of each wake-up over time
    steadiness.py            whether late wake-ups keep a distance, in words
    explained_records.py     explanations beside the records
    comparison.py            a comparison of sets of runs
    side_by_side.py          two sides under each load
    published_comparison.py  records beside a published table
"""
