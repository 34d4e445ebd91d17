"""Helpers that several test folders import: `from support.tiny import …`."""
