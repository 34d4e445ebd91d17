"""Domains that training never saw: what is measured on them, and what a person sees of it."""
