"""
Traces of the Linux kernel's ftrace: trace.dat files, and text that people keep.

    events.py     an event, lost events, and a trace that can be asked for both
    formats.py    the formats of events, as the kernel that wrote them tells them
    datfile.py    the head of a trace.dat file of trace-cmd, version 6 or 7
    pages.py      pages of the ring buffer, many at a time
    dat.py        a trace.dat file as a trace
    lines.py      lines of `trace`, `trace_pipe` and `trace-cmd report`
    wording.py    the fields of an event that was printed
    text.py       text as a trace
    open.py       which of them a file is
"""
