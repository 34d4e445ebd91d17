"""Numbers, metrics and records in words, and text that other people wrote made safe to show and to keep."""
