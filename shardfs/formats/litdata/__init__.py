"""Datasets of LitData (Lightning)."""
