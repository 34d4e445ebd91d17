"""Designs in which intervals are tried, and how often they hold the truth."""
