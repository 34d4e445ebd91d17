"""What other libraries remark while an image is decoded reaches nobody, and what they say elsewhere still does."""

import logging
import struct
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import tifffile

from crossgraft.data._pillow_files import quiet_libraries
from crossgraft.data.decoding import decode_file


def remark(module):
    """A warning as it comes from a module."""
    warnings.warn_explicit("a remark", UserWarning, f"{module}.py", 1, module=module)


@pytest.mark.parametrize("module", ["PIL.TiffImagePlugin", "tifffile.tifffile", "pydicom.values", "nibabel.nifti1"])
def test_a_library_is_quiet_in_the_block_and_not_after_it(module):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with quiet_libraries():
            remark(module)
            remark("crossgraft.data")
        remark(module)
    assert [warning.filename for warning in shown] == ["crossgraft.data.py", f"{module}.py"]


def test_filters_are_left_as_they_were():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mine")
        before = list(warnings.filters)
        with quiet_libraries(), quiet_libraries():
            pass
        assert warnings.filters == before


def test_another_thread_hears_everything():
    inside, go_on = threading.Event(), threading.Event()

    def decode():
        with quiet_libraries():
            inside.set()
            go_on.wait(10)
            remark("PIL.Image")

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        thread = threading.Thread(target=decode)
        thread.start()
        inside.wait(10)
        remark("PIL.PngImagePlugin")
        go_on.set()
        thread.join()
    assert [warning.filename for warning in shown] == ["PIL.PngImagePlugin.py"]


def test_a_filter_that_is_set_meanwhile_stays():
    with warnings.catch_warnings():
        with quiet_libraries():
            warnings.filterwarnings("error", message="set meanwhile")
            with quiet_libraries():
                remark("PIL.Image")
        with pytest.raises(UserWarning, match="set meanwhile"):
            warnings.warn("set meanwhile", UserWarning, stacklevel=1)


def test_log_messages_are_quiet_in_the_block_only(logged):
    with quiet_libraries():
        logging.getLogger("pydicom.pixels.decoders.base").error("inside")
    logging.getLogger("pydicom").warning("outside")
    assert logged == ["outside"]


def test_nothing_reaches_stderr(tmp_path):
    """A TIFF with a tag that lies beyond its end makes Pillow warn, in a plain process without any filter."""
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, np.arange(64, dtype=np.uint8).reshape(8, 8), software="a program with a name")
    content = bytearray(path.read_bytes())
    tag = content.index(struct.pack("<HH", 305, 2))
    content[tag + 8 : tag + 12] = struct.pack("<I", 10**6)
    path.write_bytes(content)
    decode = "print(decode_file(pathlib.Path(sys.argv[1])).sum())"
    code = f"import pathlib, sys; from crossgraft.data.decoding import decode_file; {decode}"
    command = [sys.executable, "-W", "always", "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("2016", "")
    np.testing.assert_array_equal(decode_file(path)[..., 0].ravel(), np.arange(64))
