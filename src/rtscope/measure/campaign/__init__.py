"""
What is to be measured: a campaign, from a file, from options, or from a record.

    model.py    a campaign: every default filled in, every value in range
    values.py   types of its values, with their messages
    check.py    contradictions between values
    file.py     a campaign as a TOML file, in a bundle, in a record
    options.py  options of the command line that replace values
"""
