"""Datasets of MosaicML Streaming."""
