"""What is to be measured: a campaign, from a file, from options, or from a record."""
