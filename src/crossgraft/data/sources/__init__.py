"""Where images come from. One file a kind; other packages add theirs through ``crossgraft.data_sources``."""

from crossgraft.data.sources._source import DataSource as DataSource
from crossgraft.data.sources._source import SourceRequest as SourceRequest
from crossgraft.data.sources._source import SourceRows as SourceRows
from crossgraft.data.sources.csv_table import CsvTable as CsvTable
from crossgraft.data.sources.digits import Digits as Digits
from crossgraft.data.sources.hf_dataset import HfDataset as HfDataset
from crossgraft.data.sources.image_folder import ImageFolder as ImageFolder
from crossgraft.data.sources.npz_file import NpzFile as NpzFile
from crossgraft.registry import Registry

SOURCES: Registry[DataSource] = Registry("data source", group="crossgraft.data_sources", plugin_type=DataSource)
"""All kinds of data by name; the first that accepts a location opens it."""

SOURCES.add("digits", Digits())
SOURCES.add("csv_table", CsvTable())
SOURCES.add("npz_file", NpzFile())
SOURCES.add("hf_dataset", HfDataset())
SOURCES.add("image_folder", ImageFolder())

__all__ = ["SOURCES", "CsvTable", "DataSource", "Digits", "HfDataset", "ImageFolder", "NpzFile", "SourceRequest", "SourceRows"]
