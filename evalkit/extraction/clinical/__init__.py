"""Clinical reports: structure, fields, rules, extractor."""
