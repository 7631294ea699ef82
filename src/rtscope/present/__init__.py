"""
Reports: a pure model with all decisions, and thin renderers.

    records ─build_model─▶ Model ─▶ text · markdown · data · html · charts
    records ─build_comparison─▶ Comparison ─▶ the same

    model/                     the content of a report: sentences, numbers, order
    formats/                   renderers: terminal, Markdown, CSV, JSON, page
    charts/                    charts as SVG and PNG
    tables.py                  what tables have beside their figures
    words.py                   numbers, names and lists as text
    report.md, summary.md      a report in Markdown; the same for a merge request
    compare.md, pair.md        a comparison in Markdown; of two sides
    published.md               a published table beside records, in Markdown
    page.html, page.css        the page of a report
    parts.html                 parts that several pages share
    compare.html               the page of a comparison
    published.html             the page of a published table
    explain.html, explain.css  the page of explanations
"""
