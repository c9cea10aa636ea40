"""Label Studio: answers as regions and choices, import of annotators' answers."""
