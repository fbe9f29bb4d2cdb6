"""From text to token files: JSON lines or parquet in, `.bin` and `.idx` out."""

from coredata.preprocess.errors import PreprocessError, WorkerDied
from coredata.preprocess.report import KeyCounts, PreprocessReport, RowCounts
from coredata.preprocess.run import preprocess
from coredata.preprocess.sentences import SentenceSplitter

__all__ = [
    "KeyCounts",
    "PreprocessError",
    "PreprocessReport",
    "RowCounts",
    "SentenceSplitter",
    "WorkerDied",
    "preprocess",
]
