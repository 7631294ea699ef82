"""
What a virtual board executed: the plugin's records, symbols, and a listing.

    file.py     the file of recorded paths, as the plugin writes it and packed
    section.py  recorded paths as arrays: blocks, tasks, CPUs
    symbols.py  names for addresses of a kernel
"""
