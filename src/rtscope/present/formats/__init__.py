"""Reports as text, Markdown, CSV, JSON and pages: no decisions, no arithmetic."""
