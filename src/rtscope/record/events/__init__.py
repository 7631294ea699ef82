"""
Traces of the Linux kernel's ftrace: trace.dat files, and text that people keep.

    events.py   an event, lost events, and the interface of every trace
    datfile.py  the head of a trace.dat file of trace-cmd, and its formats of events
    pages.py    pages of the ring buffer, many at a time
    dat.py      a trace.dat file as a trace; the kind of a trace file
    text.py     text as a trace
    forms.py    other text, written as ftrace's: perf script, LTTng, ticks, prefixes
    reports.py  what tracers and rtla report of a latency
    writer.py   pages from an agent as a trace.dat file
"""
