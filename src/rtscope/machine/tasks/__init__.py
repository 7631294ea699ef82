"""
Every thread of a machine: its policy, its CPUs and its marks.

    model.py              a thread: kind, policy, marks; filters of the list
    agentlist.py          the list of threads, from the agent
    listing.py            threads from the lines of the agent
    marks.py, marks.toml  marks: one rule each, with its reason
    statistics.py         task statistics of programs with `lib/rtscope_task`
"""
