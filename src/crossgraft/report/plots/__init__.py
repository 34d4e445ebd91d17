"""Drawings of the pages, each as SVG text."""
