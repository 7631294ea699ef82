"""`rtscope explain`: the causes of the worst wake-ups."""
