"""The pages of docs/tutorial and docs/how-to, typed as they say: make docs-run."""
