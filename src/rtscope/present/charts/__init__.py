"""Charts and bars as SVG and PNG."""
