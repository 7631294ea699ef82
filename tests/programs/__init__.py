"""
`rtscope app check` on programs that others wrote, beside a second tool: see run.py.

    programs.toml   the programs: package, command, helpers, policy
    witness.py      what bpftrace, /proc and readelf see of the same program meanwhile
    judge.py        is a finding true, and which offence was not found?
    run.py          all programs, one after the other, resumable: a table
"""
