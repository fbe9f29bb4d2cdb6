"""The reference vectors that ship with the package: what Megatron-LM itself gave."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class GoldenCase:
    """Settings, and the arrays that the reference made of them."""

    folder: str
    name: str
    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def __str__(self) -> str:
        """As failures name it, such as "gpt/one_epoch"."""
        return f"{self.folder}/{self.name}"


def golden_directory(folder: str) -> Path:
    """Where the vectors of a folder (blend, gpt, indexed, preprocess, samplers, …) are.

    Raises:
        FileNotFoundError: they are not installed.
    """
    directory = Path(str(files("coredata.testing"))) / "golden" / folder
    if not directory.is_dir():
        raise FileNotFoundError(
            f"the reference vectors {directory} are missing; install coredata again, with its data"
        )
    return directory


def golden_cases(folder: str, *, without: tuple[str, ...] = ()) -> list[GoldenCase]:
    """All cases of a folder, by name, but those named in `without`.

    Raises:
        FileNotFoundError: there are none; a check of nothing would pass.
    """
    directory = golden_directory(folder)
    paths = [path for path in sorted(directory.glob("*.json")) if path.stem not in without]
    if not paths:
        raise FileNotFoundError(f"no reference vectors in {directory}; install coredata again")
    return [_load(folder, path) for path in paths]


def golden_case(folder: str, name: str) -> GoldenCase:
    """One case.

    Raises:
        FileNotFoundError: there is none of this name.
    """
    return _load(folder, golden_directory(folder) / f"{name}.json")


def _load(folder: str, path: Path) -> GoldenCase:
    arrays: dict[str, np.ndarray] = {}
    packed = path.with_suffix(".npz")
    if packed.exists():
        with np.load(packed, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    return GoldenCase(folder, path.stem, json.loads(path.read_text(encoding="utf-8")), arrays)
