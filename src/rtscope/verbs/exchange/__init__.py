"""
`rtscope import` and `export`: results of other tools, and formats that they read.

    importing.py  `import`
    records.py    records from runs of other tools
    exporting.py  `export`
    writers/      the formats of `export`
"""
