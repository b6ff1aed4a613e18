"""Parquet files, read by pages."""
