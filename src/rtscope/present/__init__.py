"""
Reports: a pure model with all decisions, and thin renderers.

    records ─build_model─▶ Model ─▶ text · markdown · data · html · charts
    records ─build_comparison─▶ Comparison ─▶ comparetext · comparehtml
"""
