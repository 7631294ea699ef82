"""
Reports: a pure model that decides what is said, and thin renderers that say it.

    records ─build_model─▶ Model ─▶ text · markdown · data · html · charts
    records ─build_comparison─▶ Comparison ─▶ comparetext · comparehtml
"""
