"""``python -m crossgraft`` is the command ``crossgraft``."""

from crossgraft.cli.main import run

if __name__ == "__main__":
    run()
