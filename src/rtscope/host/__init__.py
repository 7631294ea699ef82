"""
The computer that rtscope runs on: errors, units, files, processes.

    errors.py   errors that rtscope raises on purpose, and the exit status of each
    units.py    durations, sizes, microseconds and claims, read and written
    version.py  the version of rtscope
    process.py  programs that rtscope starts; nothing else imports subprocess
    escape.py   foreign text, made harmless for terminal, page, Markdown
    files/      reading and writing files; archives, CSV, XML
"""
