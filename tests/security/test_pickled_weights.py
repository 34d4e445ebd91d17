"""Files of ``torch.save``: whatever is in them, they are weights or a named error, and take no more memory than there is."""

import io
import random
import zipfile
from contextlib import suppress

import pytest
import torch

from crossgraft import compute
from crossgraft.errors import CrossgraftError, DataError, OutOfMemoryError
from crossgraft.models.sources.local_checkpoint import read_state_dict


def saved(**options):
    file = io.BytesIO()
    torch.save({"a": torch.zeros(3, 4), "b": torch.ones(2)}, file, **options)
    return file.getvalue()


@pytest.mark.parametrize("zipped", [True, False])
def test_any_damage_is_a_named_error(tmp_path, zipped):
    whole, path = saved(_use_new_zipfile_serialization=zipped), tmp_path / "net.pth"
    draw = random.Random(0)
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(min(len(content), 600))] = draw.randrange(256)
        path.write_bytes(content)
        with suppress(CrossgraftError):
            read_state_dict(path)


PICKLES = {
    "nothing on the stack": b"\x80\x02.",
    "never remembered": b"\x80\x02h\x05.",
    "a list as a key": b"\x80\x02}]]s.",
    "cut": b"\x80\x02X\xff\xff\xff\xff.",
    "contains itself": b"\x80\x02}q\x00X\x05\x00\x00\x00modelq\x01h\x00s.",
}


@pytest.mark.parametrize("case", PICKLES)
def test_a_pickle_that_makes_no_sense_is_a_named_error(tmp_path, case):
    path = tmp_path / "net.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", PICKLES[case])
        archive.writestr("net/version", "3\n")
    with pytest.raises(DataError, match=r"net\.pth (cannot be read as a checkpoint: \S|is no state dict)"):
        read_state_dict(path)


def packed(path):
    """The same weights in a packed archive, which torch reads too."""
    with zipfile.ZipFile(io.BytesIO(saved())) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name))
        archive.writestr("archive/more", bytes(10**7))
    return path


def test_what_unpacks_to_more_than_the_memory_is_refused_before(tmp_path, monkeypatch):
    path = packed(tmp_path / "net.pth")
    assert set(read_state_dict(path)) == {"a", "b"}
    monkeypatch.setattr(compute, "available_memory", lambda: 10**6)
    with pytest.raises(OutOfMemoryError, match=r"The checkpoint net\.pth needs 10 MB of memory"):
        read_state_dict(path)
