"""Clinical reports: their structure, the offline reader, rules, the extractor."""
