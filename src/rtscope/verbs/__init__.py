"""
One room for each verb, or family of verbs; none imports another.

    */  a verb or a family: its `__init__` has its files, `cli/verbs.toml` its commands

`run`, `report`, `compare`, `explain`, `audit`, `tasks`, `sweep`, `bisect`, `board`,
`kernel`, `history`, `pack` and `doctor` are called as their commands; `app check` and
`app unit` are in `app`, `app demo` is in `demo`, `import` and `export` in `exchange`.
"""
