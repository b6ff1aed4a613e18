"""Writes a Parquet file as Hugging Face's library does: ``huggingface_writer.py SOURCE TARGET``.

SOURCE is a Parquet file with the columns path, content, label and caption. It is run as a program, in a Python that has
datasets, and imports nothing of shardfs.
"""

from __future__ import annotations

import importlib
import sys

from pyarrow import parquet

_LABELS = 1000


def main() -> None:
    datasets = importlib.import_module("datasets")
    source, target = sys.argv[1:]
    table = parquet.read_table(source)
    columns = table.to_pydict()
    pictures = [
        {"path": path, "bytes": content}
        for path, content in zip(columns["path"], columns["content"], strict=True)
    ]
    features = datasets.Features(
        image=datasets.Image(),
        label=datasets.ClassLabel(names=[f"class {number}" for number in range(_LABELS)]),
        caption=datasets.Value("string"),
    )
    records = {"image": pictures, "label": columns["label"], "caption": columns["caption"]}
    datasets.Dataset.from_dict(records, features=features).to_parquet(target)


if __name__ == "__main__":
    main()
