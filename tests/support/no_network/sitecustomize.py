"""Python imports this by itself when its folder is on the path: each process ends as soon as it turns to the network."""

import os
import sys
from pathlib import Path

_GOES_OUT = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")


def _stop(event, arguments):
    if event in _GOES_OUT:
        with Path(os.environ["NETWORK_LOG"]).open("a", encoding="utf-8") as log:
            log.write(f"{event} {arguments!r}\n")
        os._exit(97)


sys.addaudithook(_stop)
