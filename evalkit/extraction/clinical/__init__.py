"""Clinical reports: their structure, what they say in each field, and the rules for it."""
