"""Times litdata's own ``dataset[i]``, in a Python that has it: ``litdata_reader.py FOLDER``, a JSON list of i on stdin.

The last line that it prints is the median in seconds. It is run as a program and imports nothing of shardfs.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time


def main() -> None:
    dataset = importlib.import_module("litdata").StreamingDataset(sys.argv[1], shuffle=False)
    took = []
    for index in json.load(sys.stdin):
        started = time.perf_counter()
        dataset[index]
        took.append(time.perf_counter() - started)
    print(statistics.median(took))


if __name__ == "__main__":
    main()
