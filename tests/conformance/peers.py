"""What other readers find in a Parquet file, column by column: pyarrow, and DuckDB where pyarrow refuses."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path

_MOST_MICROSECONDS = (1 << 63) // 1000
_HAS_DUCKDB = find_spec("duckdb") is not None


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a peer reads it: *values*, or None where none does, and its *problem*.

    *is_coarse*: the values are moments that the peer cuts off at microseconds.
    """

    name: str
    values: pa.ChunkedArray | None
    problem: str = ""
    is_variant: bool = False
    is_coarse: bool = False


def columns_of(path: Path) -> tuple[list[Column], str]:
    """The columns of a file, and why there are none where no peer opens it."""
    try:
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return _by_duckdb(path, str(error))
    if len(set(names)) < len(names):
        return _whole(file), ""
    return [_column(path, file, name) for name in names], ""


def _whole(file: parquet.ParquetFile) -> list[Column]:
    table = file.read()
    return [Column(name, table.column(at)) for at, name in enumerate(table.column_names)]


def _column(path: Path, file: parquet.ParquetFile, name: str) -> Column:
    kind = file.schema_arrow.field(name).type
    if _is_variant(kind):
        return _duckdb_column(path, name, "a variant", is_variant=True)
    try:
        values = file.read(columns=_leaves(file, name)).column(name)
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        return _duckdb_column(path, name, str(error))
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        exact = _in_range(path, name, values)
        return Column(name, exact, is_coarse=exact is not values)
    return Column(name, values)


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a column looks like variants, which pyarrow shows as they are stored."""
    names = {field.name for field in kind} if pa.types.is_struct(kind) else set()
    return "metadata" in names and names <= {"metadata", "value", "typed_value"}


def _leaves(file: parquet.ParquetFile, name: str) -> list[str]:
    """The paths of the leaves of a column, since its own name may have dots in it."""
    paths = [file.schema.column(number).path for number in range(len(file.schema))]
    return [path for path in paths if path == name or path.startswith(f"{name}.")] or [name]


def _in_range(path: Path, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """*values* of nanoseconds; DuckDB's where some are beyond what these can hold, None where nobody has them right."""
    wide = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us").read([name]).column(name)
    if wide.type.unit != "us":
        return values
    numbers = [number or 0 for number in wide.cast(pa.int64()).to_pylist()]
    if max(map(abs, numbers), default=0) < _MOST_MICROSECONDS:
        return values
    return _duckdb_column(
        path, name, ""
    ).values  # pyarrow takes negative nanoseconds for positive ones


# --- duckdb ------------------------------------------------------------------------------------------------


def _by_duckdb(path: Path, why: str) -> tuple[list[Column], str]:
    if not _HAS_DUCKDB:
        return [], why
    import duckdb

    try:
        with duckdb.connect() as base:
            rows = base.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    except duckdb.Error as error:
        return [], f"{why}; {error}"
    return [_duckdb_column(path, row[0], why, is_variant=row[1] == "VARIANT") for row in rows], ""


def _duckdb_column(path: Path, name: str, why: str, *, is_variant: bool = False) -> Column:
    if not _HAS_DUCKDB:
        return Column(name, None, why, is_variant)
    import duckdb

    quoted = '"' + name.replace('"', '""') + '"'
    shown = f"{quoted}::JSON::VARCHAR" if is_variant else quoted
    query = f"SELECT {shown} AS v FROM read_parquet(?, binary_as_string=false)"
    try:
        with duckdb.connect() as base:
            base.execute("SET TimeZone='UTC'")
            table: Any = base.sql(query, params=[str(path)]).to_arrow_table()
    except (duckdb.Error, pa.ArrowException) as error:
        return Column(name, None, f"{why}; {error}", is_variant)
    return Column(name, table.column(0), is_variant=is_variant)
