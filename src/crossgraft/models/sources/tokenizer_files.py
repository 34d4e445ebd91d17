"""Tokenizers of transformers from the files of a folder or repository, which are data and stay so.

What transformers reads is a copy with those files alone that tokenizers have, and with a ``tokenizer_config.json`` of known
settings: none of code (``auto_map``), none that names other files (``vocab_file`` …).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossgraft.errors import CrossgraftError, DataError, MissingExtraError, MissingWeightsError
from crossgraft.models.sources.described_places import DescribedPlace
from crossgraft.models.sources.hub_description import CONFIG, read_json
from crossgraft.models.sources.transformers_networks import quietly
from crossgraft.paths import shortened

SETTINGS = "tokenizer_config.json"
_WHOLE = ("tokenizer.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
"""Each is a vocabulary by itself."""
_PAIR = ("vocab.json", "merges.txt")
_BESIDE = ("special_tokens_map.json", "added_tokens.json")
_MOST_BYTES = 1 << 27
"""128 MiB: the largest vocabulary of the networks that are supported has half of that."""
_TOKENS = """
    bos_token eos_token unk_token pad_token sep_token cls_token mask_token additional_special_tokens extra_special_tokens
"""
_SETTINGS = f"""
    {_TOKENS} tokenizer_class model_max_length padding_side truncation_side model_input_names added_tokens_decoder
    add_prefix_space add_bos_token add_eos_token do_lower_case do_basic_tokenize strip_accents tokenize_chinese_chars
    never_split clean_up_tokenization_spaces split_special_tokens sp_model_kwargs legacy errors trim_offsets
"""
"""Settings of a tokenizer that decide tokens; all others are of chats, of training, or name files."""

_OWN_WEIGHTS = "Encode the prompts with that code yourself, and give the vectors: class_weights=FILE."


@contextmanager
def tokenizer_folder(place: DescribedPlace, *, kind: str | None) -> Generator[Path]:
    """A folder with a copy of the files of a tokenizer, for as long as the block lasts.

    Args:
        place: Where they are.
        kind: ``model_type`` of the network, by which transformers chooses the class of a tokenizer that names none.

    Raises:
        MissingWeightsError: There is no vocabulary.
        DataError: A file is damaged or too large.
        UsageError: A file names code.
    """
    whole = [file for name in _WHOLE if (file := place.find((name,))) is not None]
    pair = [file for name in _PAIR if (file := place.find((name,))) is not None]
    if not whole and len(pair) < len(_PAIR):
        raise MissingWeightsError(
            f"The tokenizer of {place.name} is not on this machine: there is none of {', '.join(_WHOLE)}, nor "
            f"{' and '.join(_PAIR)}. Put the files of the tokenizer beside {SETTINGS}."
        )
    with tempfile.TemporaryDirectory(prefix="crossgraft-") as made:
        folder = Path(made)
        for file in (*whole, *pair):
            if file.stat().st_size > _MOST_BYTES:
                raise DataError(
                    f"{file.name} of {place.name} has {file.stat().st_size:,} bytes, which no vocabulary has. Download it again."
                )
            shutil.copyfile(file, folder / file.name)
        for name in (SETTINGS, *_BESIDE):
            if (file := place.find((name,))) is not None:
                _write(folder / name, _known(name, read_json(file, of=place.name, instead=_OWN_WEIGHTS)))
        if kind is not None:
            _write(folder / CONFIG, {"model_type": kind})
        yield folder


def read_tokenizer(place: DescribedPlace, make: Callable[[Path], Any], *, kind: str | None) -> Any:
    """What ``make`` reads from a folder with the files of a tokenizer.

    Raises:
        MissingWeightsError, DataError, UsageError: As of ``tokenizer_folder``.
        MissingExtraError: Its class needs a package that is not installed.
    """
    with tokenizer_folder(place, kind=kind) as folder:
        try:
            with quietly():
                return make(folder)
        except (CrossgraftError, KeyboardInterrupt, SystemExit):
            raise
        except ImportError as error:
            raise MissingExtraError(
                f"The tokenizer of {place.name} needs a package that is not installed. Run: pip install 'crossgraft[text]'. "
                f"transformers says: {shortened(' '.join(str(error).split()))}"
            ) from error
        except BaseException as error:  # readers written in Rust panic with one that is no Exception
            reason = shortened(" ".join(str(error).replace(str(folder), place.name).split()))
            raise DataError(
                f"The tokenizer of {place.name} cannot be read: {type(error).__name__}: {reason}. Copy or download its files "
                "again."
            ) from error


def _known(name: str, said: Mapping[str, object]) -> dict[str, object]:
    """What a file says under known keys."""
    if name == "added_tokens.json":
        return {key: value for key, value in said.items() if isinstance(value, int)}
    names = (_SETTINGS if name == SETTINGS else _TOKENS).split()
    return {key: said[key] for key in names if key in said}


def _write(file: Path, content: dict[str, object]) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
