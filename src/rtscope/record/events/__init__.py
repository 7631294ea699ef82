"""
Traces of the Linux kernel's ftrace: trace.dat files, and text that people keep.

    events.py   an event, lost events, and a trace that can be asked for both
    datfile.py  the head of a trace.dat file of trace-cmd, and its formats of events
    pages.py    pages of the ring buffer, many at a time
    dat.py      a trace.dat file as a trace; which kind of trace a file is
    text.py     text as a trace
    writer.py   pages that an agent sent as a trace.dat file
"""
