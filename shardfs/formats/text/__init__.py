"""Rows in text: JSON Lines, JSON documents, CSV, TSV, lines."""
