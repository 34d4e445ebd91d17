"""Folders with a text tower and a tokenizer from somewhere: nothing in them runs, names another file, or fills the memory."""

import json
import sys
import time
from contextlib import suppress

import pytest

from crossgraft.errors import DataError, UsageError
from crossgraft.models import load_text_tower
from crossgraft.models.sources import tokenizer_files
from support import text_towers as made

CODE = """
from pathlib import Path
Path({proof!r}).write_text("ran")
class Evil:
    pass
"""
DEEP, LARGE = "[" * 100_000 + "]" * 100_000, "1" * 6000
SECRET = "root:x:0:0:somebody's secret"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("towers")
    made.write_transformers_clip(folder / "clip")
    made.write_biomedclip(folder / "bio", folder)
    return folder


@pytest.fixture(params=["clip", "bio"])
def attacked(request, whole, tmp_path):
    """A folder of transformers and one of open_clip, to be changed, and the function that loads it."""
    folder = tmp_path / request.param
    folder.mkdir()
    for file in (whole / request.param).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    library = "transformers" if request.param == "clip" else "open_clip"
    return folder, lambda: load_text_tower(f"{library}:{folder}")


def change(file, **settings):
    said = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**said, **settings}))


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json", "special_tokens_map.json"])
def test_code_that_a_file_names_does_not_run(name, attacked, tmp_path, monkeypatch):
    folder, load = attacked
    proof = tmp_path / "proof"
    for module in ("evil.py", "tokenization_evil.py"):
        (folder / module).write_text(CODE.format(proof=str(proof)))
    monkeypatch.chdir(folder)
    change(
        folder / name, auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"], "AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}
    )
    with pytest.raises(UsageError, match=rf"{name}.*auto_map"):
        load()
    assert not proof.exists() and "evil" not in sys.modules


@pytest.mark.parametrize("name", ["os.system", "evil.Evil", "../evil", {"a": 1}])
def test_the_class_of_a_tokenizer_is_one_of_transformers(name, attacked, tmp_path, monkeypatch):
    folder, load = attacked
    proof = tmp_path / "proof"
    (folder / "evil.py").write_text(CODE.format(proof=str(proof)))
    monkeypatch.chdir(folder)
    change(folder / "tokenizer_config.json", tokenizer_class=name)
    with suppress(DataError, UsageError):  # transformers may take the usual class instead
        load()
    assert not proof.exists() and "evil" not in sys.modules


@pytest.mark.parametrize("key", ["vocab_file", "tokenizer_file", "special_tokens_map_file", "added_tokens_file", "chat_template"])
def test_no_setting_names_another_file(key, attacked, tmp_path):
    """What such a file holds would be read as a vocabulary, and quoted by an error."""
    folder, load = attacked
    (tmp_path / "secret").write_text(SECRET)
    expected = load().encode(["a cat"])
    change(folder / "tokenizer_config.json", **{key: str(tmp_path / "secret")})
    assert (load().encode(["a cat"]) == expected).all()


@pytest.mark.parametrize("key", ["hf_model_name", "hf_tokenizer_name"])
@pytest.mark.parametrize("name", ["../secrets", "/etc", "..", "a/../b", "org/name@../..", "C:\\x", "https://host/x", "a/b/c"])
def test_no_name_of_a_repository_leads_out_of_the_folders(key, name, whole, tmp_path):
    folder = tmp_path / "bio"
    folder.mkdir()
    for file in (whole / "bio").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    said = json.loads((folder / "open_clip_config.json").read_text())
    said["model_cfg"]["text_cfg"][key] = name
    (folder / "open_clip_config.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match="no name of a repository"):
        load_text_tower(f"open_clip:{folder}")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [DEEP, "", "[]", "\0" * 100, '{"model": {"type": "BPE"}}', f'{{"a": {LARGE}}}'])
def test_a_damaged_file_of_a_tokenizer_is_named(name, content, attacked):
    folder, load = attacked
    (folder / name).write_text(content)
    if name == "tokenizer_config.json" and content.startswith('{"model"'):
        load()  # settings that are not known are none
        return
    with pytest.raises(DataError) as caught:
        load()
    assert folder.name in str(caught.value) and len(str(caught.value)) < 1500


def test_a_huge_vocabulary_is_refused_unread(attacked, monkeypatch):
    folder, load = attacked
    with (folder / "tokenizer.json").open("ab") as file:
        file.truncate(tokenizer_files._MOST_BYTES + 1)  # takes no place on a disk
    with pytest.raises(DataError, match=r"tokenizer\.json of .* has 134,217,729 bytes, which no vocabulary has"):
        load()


def test_a_huge_number_of_tokens_fills_no_memory(attacked):
    folder, load = attacked
    said = json.loads((folder / "config.json").read_text())
    for part in (said, said.get("text_config", {})):
        part["vocab_size"] = 10**12
    (folder / "config.json").write_text(json.dumps(said))
    with pytest.raises(UsageError, match="no architecture has one above"):
        load()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(" * 3000])
def test_a_pattern_of_a_tokenizer_takes_no_time_without_end(pattern, attacked):
    folder, load = attacked
    said = json.loads((folder / "tokenizer.json").read_text())
    said["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    (folder / "tokenizer.json").write_text(json.dumps(said))
    start = time.process_time()
    with suppress(DataError):
        load().tokens_of("a" * 25 + "!")
    assert time.process_time() - start < 20
