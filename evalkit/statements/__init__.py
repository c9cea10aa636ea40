"""Task 3: bank-statement templates. Propose, check, decide, revise, or escalate to a person."""
