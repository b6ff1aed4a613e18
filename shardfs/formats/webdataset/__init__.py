"""Tar archives, grouped into records as WebDataset does."""
