"""Clinical reports of many house styles, with the truth of each field."""
