"""Bank-statement templates: build, apply, review, revise, hand over to a person."""
