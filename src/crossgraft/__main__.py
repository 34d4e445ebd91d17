"""The command ``crossgraft``, which ``python -m crossgraft`` is, too: it can be interrupted before anything else is imported.

Until the command begins there is nothing to keep, and nothing to say: a signal ends the process as it ends any other program.
"""

from __future__ import annotations

import signal


def run() -> None:
    """Run the command line and exit with one of the codes that ``crossgraft --help`` lists."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the handler of Python shows a traceback of whatever is being imported
    from crossgraft.cli.main import run as run_command_line

    run_command_line()


if __name__ == "__main__":
    run()
