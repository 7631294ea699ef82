"""
A directory of records.

    records.py  records of a campaign, which runs are done, and what lies beside them
"""
