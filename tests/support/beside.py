"""Tests that wait for other programs most of the time, done beside each other: all of a file begin with the first of them.

Each is a function that looks at what it finds itself; a test of its own waits for it and fails as it fails.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def begun(request, scenarios, tmp_path_factory, *shared):
    """Name → future of each of ``scenarios`` that tests of the file of ``request`` ask for by their parameter ``scenario``.

    A scenario takes a folder of its own, then what is shared.
    """
    of_file = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    asked = dict.fromkeys(item.callspec.params.get("scenario") for item in of_file)
    folders = {name: tmp_path_factory.mktemp("beside") for name in asked if name in scenarios}
    with ThreadPoolExecutor(max(1, len(folders))) as pool:
        yield {name: pool.submit(scenarios[name], folder, *shared) for name, folder in folders.items()}
