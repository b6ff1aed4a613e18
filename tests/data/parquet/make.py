"""``python make.py WRITER``: write the files of a writer, and what must be shown of them, from the same values.

WRITER is `spark` (pyspark 4 and Java), `fastparquet`, `polars`, `duckdb`, or `arrow` (any pyarrow; the version is part
of the names of the files). Nothing here knows shardfs: the truths are written as docs/tree.md says.
"""

import base64
import datetime
import decimal
import json
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

HERE = Path(__file__).parent
UTC = datetime.timezone.utc
D = decimal.Decimal


class Said:
    """A value that is no text, as it is written."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


def plain(value):
    """A value inside of JSON."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return text(value)


def text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        whole = value.isoformat()
        return whole.rstrip("0") if "." in whole and not value.tzinfo else whole
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def file(name, value, as_json):
    if isinstance(value, str) and not as_json:
        return name + ".txt", value
    if isinstance(value, bytes):
        return name + ".bin", {"base64": base64.b64encode(value).decode()}
    if as_json or isinstance(value, (list, dict, tuple)):
        shown = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
        return name + ".json", shown + "\n"
    return name + ".txt", text(value) + "\n"


def truth(name, writer, rows, as_json=()):
    """Write what is in each row. *as_json*: columns that are JSON whatever is in them."""
    records = [
        dict(file(key, value, key in as_json) for key, value in row.items() if value is not None)
        for row in rows
    ]
    said = {"writer": writer, "records": records}
    path = HERE / (name + ".values.json")
    path.write_text(json.dumps(said, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def rows_of(count=8):
    """Values of many types; every fourth row is null but for its number."""
    found = []
    for n in range(count):
        row = {
            "id": n,
            "long": n * 10**12 - 1,
            "ratio": n / 8,
            "flag": n % 3 == 0,
            "text": ["", "zwei", "drei Wörter hier"][n % 3],
            "bytes": bytes([255, n, 254]),
            "price": D(n * 1001).scaleb(-2),
            "day": datetime.date(1969, 12, 30) + datetime.timedelta(n),
            "tags": ["a", None, "bb"][: n % 4],
            "box": {"x": n, "y": None if n % 2 else "q"},
        }
        if n % 4 == 3:
            row = dict.fromkeys(row, None) | {"id": n} if sys.version_info >= (3, 9) else row
        found.append(row)
    return found


# --- writers -----------------------------------------------------------------------------------------------


def spark():
    import pyspark
    from pyspark.sql import SparkSession
    from pyspark.sql import types as t

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    writer = f"pyspark {pyspark.__version__}"

    def save(name, frame, **options):
        with tempfile.TemporaryDirectory() as folder:
            frame.coalesce(1).write.options(**options).parquet(f"{folder}/out")
            part = next(Path(folder, "out").glob("part-*.parquet"))
            shutil.copyfile(part, HERE / f"{name}.parquet")

    schema = t.StructType(
        [
            t.StructField("id", t.IntegerType()),
            t.StructField("long", t.LongType()),
            t.StructField("ratio", t.DoubleType()),
            t.StructField("flag", t.BooleanType()),
            t.StructField("text", t.StringType()),
            t.StructField("bytes", t.BinaryType()),
            t.StructField("price", t.DecimalType(12, 2)),
            t.StructField("day", t.DateType()),
            t.StructField("tags", t.ArrayType(t.StringType())),
            t.StructField(
                "box",
                t.StructType(
                    [t.StructField("x", t.IntegerType()), t.StructField("y", t.StringType())]
                ),
            ),
            t.StructField("when", t.TimestampNTZType()),
            t.StructField("count", t.MapType(t.StringType(), t.IntegerType())),
        ]
    )
    rows = rows_of()
    for n, row in enumerate(rows):
        row["when"] = None if n % 4 == 3 else datetime.datetime(2020, 2, 28 + n % 2, n, 0, 0, n)
        row["count"] = None if n % 4 == 3 else {f"k{m}": m or None for m in range(n % 3)}
    frame = session.createDataFrame([tuple(row.values()) for row in rows], schema)
    shown = [{**r, "count": r["count"] and [[k, v] for k, v in r["count"].items()]} for r in rows]
    for row in shown:
        row["count"] = [] if row["count"] == {} else row["count"]
    for name, options in {
        "spark": {},
        "spark_gzip": {"compression": "gzip"},
        "spark_zstd": {"compression": "zstd"},
        "spark_lz4_raw": {"compression": "lz4_raw"},
        "spark_v2": {"parquet.writer.version": "v2"},
        "spark_v2_none": {"parquet.writer.version": "v2", "compression": "none"},
        "spark_split": {"parquet.writer.version": "v2", "parquet.enable.bytestreamsplit": "true"},
        "spark_pages": {"parquet.page.row.count.limit": "2"},
    }.items():
        save(name, frame, **options)
        truth(name, writer, shown)
    session.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    save("spark_legacy", frame)
    truth("spark_legacy", writer, shown)
    session.conf.set("spark.sql.parquet.writeLegacyFormat", "false")

    moments = [
        "2024-01-01T12:34:56.123456",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59.999999",
        None,
    ]
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    session.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
    text_rows = session.createDataFrame([(m,) for m in moments], "m string")
    save("spark_int96", text_rows.selectExpr("CAST(m AS TIMESTAMP) AS m"))
    truth("spark_int96", writer, [{"m": m and Said(m)} for m in moments])

    values = [
        {"a": 1, "b": [1.5, "x", None, {"c": True}]},
        "text",
        12345678901234,
        None,
        [],
        {"a": "no number", "d": -0.25},
    ]
    parsed = session.createDataFrame([(json.dumps(v),) for v in values], "v string")
    for name, shredding in (("spark_variant", "false"), ("spark_shredded", "true")):
        session.conf.set("spark.sql.variant.writeShredding.enabled", shredding)
        session.conf.set(
            "spark.sql.variant.forceShreddingSchemaForTest",
            "a int, b array<variant>" if shredding == "true" else "",
        )
        session.conf.set("spark.sql.parquet.annotateVariantLogicalType", "true")
        save(name, parsed.selectExpr("parse_json(v) AS v"))
        records = [{"v.json": json.dumps(v, separators=(",", ":")) + "\n"} for v in values]
        said = {"writer": writer, "records": records}
        (HERE / f"{name}.values.json").write_text(json.dumps(said, indent=0) + "\n")
    session.stop()


def fastparquet():
    import fastparquet as fp
    import pandas as pd

    rows = [
        {
            "id": n,
            "some": None if n % 3 else n,
            "f": n / 4,
            "text": None if n % 4 == 1 else f"t{n}",
            "kind": "ab"[n % 2],
            "b": bytes([255, n]),
            "ok": n % 2 == 0,
        }
        for n in range(10)
    ]
    frame = pd.DataFrame(rows)
    frame["some"] = frame["some"].astype("Int32")
    frame["kind"] = frame["kind"].astype("category")
    frame["ok"] = frame["ok"].astype("bool")
    writer = f"fastparquet {fp.__version__}"
    for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"):
        name = f"fastparquet_{codec.lower()}"
        fp.write(str(HERE / f"{name}.parquet"), frame, compression=codec, row_group_offsets=[0, 6])
        truth(name, writer, rows)


def polars():
    import polars as pl

    rows = [
        {
            "id": n,
            "text": None if n == 2 else f"t{n}",
            "list": [n, None][: n % 3],
            "kind": "xy"[n % 2],
            "s": {"a": n, "b": [f"{n}"]},
        }
        for n in range(5)
    ]
    writer = f"polars {pl.__version__}"
    frame = pl.DataFrame(rows).with_columns(pl.col("kind").cast(pl.Categorical))
    for codec in ("zstd", "lz4", "snappy", "uncompressed"):
        frame.write_parquet(HERE / f"polars_{codec}.parquet", compression=codec, row_group_size=3)
        truth(f"polars_{codec}", writer, rows)
    wide = frame.select("id", pl.col("id").cast(pl.Int128).alias("big"), "text")
    wide.write_parquet(HERE / "polars_int128.parquet")
    shown = [{"id": row["id"], "text": row["text"]} for row in rows]
    truth("polars_int128", writer, shown)


def duckdb():
    import duckdb as db

    writer = f"duckdb {db.__version__}"
    rows = [
        {
            "i": n,
            "u": 2**63 + n,
            "d": None if n == 3 else n / 16,
            "t": f"text {n}",
            "l": [[n], [], None][: n % 4],
            "m": [["k", n]] if n else [],
            "s": {"x": n, "y": {"z": f"{n}"}},
            "iv": Said(f"P{f'{n}M' if n else ''}{n + 1}DT{n}.5S"),
            "id": uuid.UUID(int=n),
            "at": datetime.datetime(2020, 1, 1, 0, 0, n, tzinfo=UTC),
            "p": D(n).scaleb(-3),
        }
        for n in range(6)
    ]
    query = """SELECT n::INT AS i, (9223372036854775808 + n)::UBIGINT AS u,
        CASE WHEN n = 3 THEN NULL ELSE n / 16 END AS d,
        'text ' || n AS t, ([[n::INT], [], NULL])[1:n % 4] AS l,
        CASE WHEN n > 0 THEN MAP {'k': n::INT} ELSE MAP {}::MAP(VARCHAR, INT) END AS m,
        {'x': n::INT, 'y': {'z': n::VARCHAR}} AS s,
        to_months(n::INT) + to_days((n + 1)::INT) + to_milliseconds(n * 1000 + 500) AS iv,
        ('00000000-0000-0000-0000-00000000000' || n)::UUID AS id,
        make_timestamptz(1577836800000000 + n * 1000000) AS at, (n / 1000)::DECIMAL(9, 3) AS p FROM range(6) t(n)"""
    base = db.connect()
    base.execute("SET TimeZone='UTC'")
    for name, options in {
        "duckdb": "",
        "duckdb_v2": ", PARQUET_VERSION v2, COMPRESSION zstd",
        "duckdb_brotli": ", COMPRESSION brotli",
        "duckdb_lz4": ", COMPRESSION lz4_raw",
    }.items():
        base.execute(f"COPY ({query}) TO '{HERE}/{name}.parquet' (FORMAT parquet{options})")
        truth(name, writer, rows)


def arrow():
    import pyarrow as pa
    import pyarrow.parquet as pq

    version = pa.__version__
    writer = f"pyarrow {version}"
    tag = "arrow_" + version.replace(".", "_")
    rows = [
        {
            "id": n,
            "text": None if n % 3 == 1 else f"text {n % 2}",
            "list": None if n == 5 else list(range(n % 4)),
            "f": n / 2,
        }
        for n in range(9)
    ]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    arrays = [
        pa.array(columns["id"], pa.int64()),
        pa.array(columns["text"]).dictionary_encode(),
        pa.array(columns["list"], pa.list_(pa.int32())),
        pa.array(columns["f"], pa.float64()),
    ]
    table = pa.Table.from_arrays(arrays, names=list(columns))
    for name, options in {
        "v1": {"compression": "snappy"},
        "v2": {"compression": "snappy", "data_page_version": "2.0"},
        "v2_gzip": {"compression": "gzip", "data_page_version": "2.0", "use_dictionary": False},
        "lz4": {"compression": "lz4"},
        "brotli": {"compression": "brotli", "use_dictionary": False},
    }.items():
        try:
            pq.write_table(table, str(HERE / f"{tag}_{name}.parquet"), **options)
        except (TypeError, ValueError, OSError) as error:
            print("left out:", name, error)
            continue
        truth(f"{tag}_{name}", writer, rows)


if __name__ == "__main__":
    {f.__name__: f for f in (spark, fastparquet, polars, duckdb, arrow)}[sys.argv[1]]()
