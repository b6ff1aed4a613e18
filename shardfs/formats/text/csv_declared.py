"""How a table of separated values is to be read, as the parameters of pandas.read_csv say that `datasets` takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shardfs.formats.text.csv_dialect import Dialect
from shardfs.formats.text.declared import is_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardfs.formats.text.declared import Declared

# Those of Python's csv module.
_QUOTE_NONE = 3
# What means any run of blanks.
_RUNS = "\\s+"

# Parameters that say how the table looks; where there is one, nothing is guessed.
_SAID = (
    "sep delimiter header names column_names skiprows quotechar quoting escapechar doublequote comment skipinitialspace"
    " lineterminator skip_blank_lines usecols index_col nrows"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table is read.

    Attributes:
        dialect: how cells are separated; None where the file shows it.
        header: the row that has the names of the columns, None for none.
        names: the names of the columns, whatever the header says.
        skipped: lines that are left out, by number; or how many of the first ones.
        limit: how many rows are wanted, None for all.
        columns: the columns that are wanted, by number or by name, None for all.
        nulls: cells that stand for nothing; *nulls_of*: those of one column.
        leading: whether rows may begin with cells for which there is no name: what pandas takes for an index.
    """

    dialect: Dialect | None = None
    header: int | None = 0
    names: tuple[str, ...] | None = None
    skipped: frozenset[int] | int = 0
    limit: int | None = None
    columns: tuple[int | str, ...] | None = None
    nulls: frozenset[bytes] = frozenset()
    nulls_of: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    leading: bool = True

    def is_null(self, column: str, cell: bytes) -> bool:
        return cell in self.nulls or cell in self.nulls_of.get(column, ())


def reading_of(declared: Declared, *, tabbed: bool) -> Reading:
    """What is declared; *tabbed*: the name of the file says that tabs separate cells. Raises Corrupt, Unsupported."""
    names = _names(declared)
    if declared.whole("skipfooter"):
        raise declared.unsupported("skipfooter", "`datasets` doesn't read such a file, either")
    if declared.get("dialect") is not None:
        raise declared.unsupported("dialect", "name its parts, such as sep and quotechar")
    nulls, nulls_of = _nulls(declared)
    return Reading(
        dialect=_dialect(declared, tabbed=tabbed),
        header=_header(declared, names),
        names=names,
        skipped=_skipped(declared),
        limit=declared.whole("nrows"),
        columns=_columns(declared),
        nulls=nulls,
        nulls_of=nulls_of,
        leading=declared.get("index_col") is not False,
    )


def _dialect(declared: Declared, *, tabbed: bool) -> Dialect | None:
    delimiter = _separator(declared)
    if delimiter is None:
        said = [name for name in _SAID.split() if name in declared]
        if not said:
            return Dialect(b"\t") if tabbed else None
        if "sep" in said or "delimiter" in said:  # null: pandas looks, too
            if len(said) > 1:
                raise declared.unsupported("sep", "name the character where other marks are named")
            return None
        delimiter = "\t" if tabbed else ","
    quoting = declared.whole("quoting") or 0
    if quoting > _QUOTE_NONE:
        raise declared.wrong("quoting", "0, 1, 2 or 3")
    quote = _mark(declared, "quotechar", '"') if quoting != _QUOTE_NONE else ""
    ends = declared.text("lineterminator", "")
    if ends not in ("", "\n"):
        raise declared.unsupported("lineterminator", "rows end in LF, CR or both")
    dialect = Dialect(
        b" " if delimiter == _RUNS else delimiter.encode("utf-8", "replace"),
        quote=quote.encode("utf-8", "replace"),
        escape=_mark(declared, "escapechar", "").encode("utf-8", "replace"),
        comment=_mark(declared, "comment", "").encode("utf-8", "replace"),
        doubled=declared.flag("doublequote", True),
        spaces=declared.flag("skipinitialspace", False),
        blank=not declared.flag("skip_blank_lines", True),
        feeds=ends == "\n",
        runs=delimiter == _RUNS,
    )
    marks = [m for m in (dialect.delimiter, dialect.quote, dialect.escape, dialect.comment) if m]
    if len(set(marks)) < len(marks) or {b"\n", b"\r"} & set(marks):
        raise declared.wrong("sep", "another character than those that quote, escape or end rows")
    return dialect


def _separator(declared: Declared) -> str | None:
    """What separates cells, None where that is to be seen. Raises Corrupt, Unsupported."""
    name = "sep" if declared.get("delimiter") is None else "delimiter"
    if name not in declared:
        return None
    sep = declared.text(name, "")
    if declared.get(name) is None:
        return None
    if sep == "\\t" or re.fullmatch(r"\\[^\w\s]", sep):  # a regular expression for one character
        sep = "\t" if sep == "\\t" else sep[1]
    if not sep:
        raise declared.wrong(name, "a character")
    if len(sep) > 1 and sep != _RUNS:
        raise declared.unsupported(name, "cells must be separated by one character, or by \\s+")
    return sep


def _mark(declared: Declared, name: str, default: str) -> str:
    mark = declared.text(name, default)
    if len(mark) > 1:
        raise declared.wrong(name, "one character")
    return mark


def _names(declared: Declared) -> tuple[str, ...] | None:
    name = "names" if declared.get("column_names") is None else "column_names"
    items = declared.items(name)
    if items is None:
        return None
    if not all(isinstance(item, str | int) for item in items):
        raise declared.wrong(name, "a list of names")
    names = tuple(map(str, items))
    if len(set(names)) < len(names):
        raise declared.wrong(name, "a list of names that differ")
    return names


def _header(declared: Declared, names: tuple[str, ...] | None) -> int | None:
    header = declared.get("header")
    if isinstance(header, list):
        raise declared.unsupported("header", "one row has the names of the columns")
    if header == "infer" or "header" not in declared:
        return 0 if names is None else None
    if header is not None and not is_count(header):
        raise declared.wrong("header", "the number of a row, or null")
    return header if isinstance(header, int) else None


def _skipped(declared: Declared) -> frozenset[int] | int:
    value = declared.get("skiprows")
    if value is None or isinstance(value, int):
        return declared.whole("skiprows") or 0
    items = declared.items("skiprows") or []
    if not all(map(is_count, items)):
        raise declared.wrong("skiprows", "a number of lines, or a list of their numbers")
    return frozenset(item for item in items if isinstance(item, int))


def _columns(declared: Declared) -> tuple[int | str, ...] | None:
    items = declared.items("usecols")
    if items is None:
        return None
    numbers = tuple(item for item in items if isinstance(item, int) and is_count(item))
    texts = tuple(item for item in items if isinstance(item, str))
    if len(items) not in (len(numbers), len(texts)):
        raise declared.wrong("usecols", "a list of names or of numbers of columns")
    return numbers or texts


def _nulls(declared: Declared) -> tuple[frozenset[bytes], Mapping[str, frozenset[bytes]]]:
    """What stands for nothing in all columns, and in some."""
    value = declared.get("na_values")
    if value is None or not declared.flag("na_filter", True):
        return frozenset(), {}
    if isinstance(value, dict):
        return frozenset(), {
            str(column): _null_texts(declared, nulls)
            for column, nulls in value.items()
            if isinstance(column, str | int)
        }
    return _null_texts(declared, value), {}


def _null_texts(declared: Declared, value: object) -> frozenset[bytes]:
    """The texts that mean one of some nulls: a number may have a point."""
    texts: set[str] = set()
    for null in value if isinstance(value, list) else [value]:
        if not isinstance(null, str | int | float):
            raise declared.wrong("na_values", "a text, a number, or a list of such")
        texts.add(str(null))
        if isinstance(null, int | float) and null == null // 1:
            texts |= {str(int(null)), str(float(null))} if abs(null) < 1 << 53 else set()
    return frozenset(text.encode("utf-8", "surrogatepass") for text in texts)
