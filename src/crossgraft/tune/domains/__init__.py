"""Domains that training never saw: whose images train, what is measured on the others, and what a person sees of it."""
