"""How shardfs reads the files that others test their readers with, value by value beside a reader of another make.

The suites are public repositories, which are not kept here: docs/conformance.md names them and says what came out.
"""
