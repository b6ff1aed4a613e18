"""Budgets and stores for bytes that cost something to get."""
