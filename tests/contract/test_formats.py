from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.formats.arrow.dataset import Arrow
from shardfs.formats.litdata.dataset import LitData
from shardfs.formats.mds.dataset import Mds
from shardfs.formats.parquet.dataset import Parquet
from shardfs.formats.parquet.litdata import LitDataParquet
from tests import DATA
from tests.contract.formats import FormatContract

if TYPE_CHECKING:
    from pathlib import Path

LITDATA = [
    "plain_dict",
    "all_serializers_v0273",
    "nested_mixed",
    "multi_worker",
    "many_tiny",
    "zstd_batch",
    "zstd_sample",
    "zstd_chunk_v0255",
    "arrow_rows",
    "arrow_rows_zstd",
    "tokens_uint16_zstd",
    "pil_modes",
    "empties",
]
MDS = [
    "all_encodings",
    "comp_zstd",
    "comp_gz",
    "json_plain",
    "csv_plain",
    "var_only",
    "many_records",
]


class TestLitData(FormatContract):
    format = LitData

    @pytest.fixture(params=LITDATA)
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "litdata" / str(request.param)


class TestMds(FormatContract):
    format = Mds

    @pytest.fixture(params=MDS)
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "mds" / str(request.param)


class TestArrow(FormatContract):
    format = Arrow

    @pytest.fixture(params=["disk_dataset", "disk_shuffle_select", "ipc_feather"])
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "huggingface" / str(request.param)


class TestParquet(FormatContract):
    format = Parquet

    @pytest.fixture(params=["images_hf", "nested", "arrays", "scalars_nulls", "dictionary"])
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "huggingface" / f"parquet_{request.param}"


class TestLitDataParquet(FormatContract):
    format = LitDataParquet

    @pytest.fixture
    def source(self) -> Path:
        return DATA / "litdata" / "parquet_index"
