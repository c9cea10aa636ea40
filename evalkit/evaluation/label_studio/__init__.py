"""Label Studio: export of answers as regions, import of annotators' answers."""
