"""
What is to be measured: a campaign, from a file, from options, or from a record.

    model.py     a campaign: every default filled in, every value in range
    values.py    types of its values, with their messages
    file.py      a campaign as tables, checked for contradictions
    messages.py  what is wrong with a value, and what to write instead
    options.py   options of the command line that replace values
"""
