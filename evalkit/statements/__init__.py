"""Task 3: bank-statement templates: propose, check, decide, revise, escalate."""
