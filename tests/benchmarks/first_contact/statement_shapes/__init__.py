"""Statements of invented banks, drawn with their truth by somebody who knows no rule that reads them."""
