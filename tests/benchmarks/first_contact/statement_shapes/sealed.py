"""The sealed half: shapes that only measure."""

from benchmarks.first_contact.statement_shapes.drawing import DrawShape

SHAPES: dict[str, DrawShape] = {}
