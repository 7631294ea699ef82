"""
Reports: a pure model with all decisions, documents made of it, and thin renderers.

    records ─build_model─▶ Model ─▶ document ─▶ terminal · Markdown
                                └─▶ page · data · charts

    model/                     the content of a report: sentences, numbers, order
    document.py                the blocks of a document: sentences, tables, notes
    documents/                 the documents of reports, comparisons, explanations
    render/                    renderers, one for each form, which know no verb
    formats/                   CSV and JSON; audits and task statistics
    charts/                    charts as SVG and PNG
    tables.py                  what tables have beside their figures
    words.py                   numbers, names and lists as text
    page.html, page.css        the page of a report
    parts.html                 parts that several pages share
    document.html              what is around the blocks of a page
    compare.html               the page of a comparison
    published.html             the page of a published table
    explain.html, explain.css  the page of explanations
"""
