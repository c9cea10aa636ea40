"""Bank-statement templates: build, apply, review and revise them."""
