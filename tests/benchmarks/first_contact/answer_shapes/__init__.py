"""Provide shapes in which models wrap, bend or damage a JSON answer."""
