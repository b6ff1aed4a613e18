"""``python -m tests.conformance FOLDER...``: compare what is in folders of test files with what others read of it."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from tests.conformance import arrow_suite, parquet_suite
from tests.conformance.report import finish


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--verbose", action="store_true", help="tell of every file")
    args = parser.parse_args()
    logging.disable()  # what is refused is told at the end
    tallies = [
        suite.run(folder)
        for folder in args.folders
        for suite in (parquet_suite, arrow_suite)
        if suite.files_in(folder)
    ]
    return finish(tallies, is_verbose=args.verbose)


if __name__ == "__main__":
    sys.exit(main())
