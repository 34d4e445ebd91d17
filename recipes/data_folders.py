"""Where the recipes find images and weights."""

from __future__ import annotations

import argparse
import os
import shutil
import tarfile
from pathlib import Path


def add_folders(parser: argparse.ArgumentParser) -> None:
    """``--data-dir`` and ``--weights-dir``; by default both lie in the folder CROSSGRAFT_DATA."""
    folder = Path(os.environ["CROSSGRAFT_DATA"]) if "CROSSGRAFT_DATA" in os.environ else None
    parser.add_argument("--data-dir", type=Path, default=folder and folder / "datasets", help="holds the image files")
    parser.add_argument("--weights-dir", type=Path, default=folder and folder / "weights", help="holds the weight files")


def check_folders(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """Ends with a message when a folder is not named; ``--smoke`` needs none."""
    if parsed.smoke:
        parsed.weights_dir = None
    elif parsed.data_dir is None or parsed.weights_dir is None:
        parser.error("name the folders with --data-dir and --weights-dir, or set CROSSGRAFT_DATA, or try --smoke")


def unpack(archive: Path, folder: Path) -> Path:
    """Extract once; a half-extracted archive is not taken for a whole one."""
    if not folder.is_dir():
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        with tarfile.open(archive) as opened:
            opened.extractall(partial, filter="data")
        partial.rename(folder)
    return folder
