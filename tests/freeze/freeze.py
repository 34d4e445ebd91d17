"""Freeze what the command line does, and show that it still does the same.

python tests/freeze/freeze.py write tests/freeze/frozen.json.gz      # runs everything and keeps its values
python tests/freeze/freeze.py compare tests/freeze/frozen.json.gz    # code 1 and one line a difference
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # this folder has a module of the name of its package

from freeze.commands import COMMANDS, Runner, keep_finished_run
from freeze.comparing import ABSOLUTE, RELATIVE, count_hashes, differences, fingerprint

MOST_LINES = 40
"""Of the differences of one command; a trained weight that changes is in hundreds of numbers."""


def read(file: Path) -> dict:
    """What ``write`` kept."""
    return json.loads(gzip.decompress(file.read_bytes()))


def write(file: Path, runner: Runner, names: list[str]) -> None:
    """Run commands and keep their values; those of other commands in the file stay if they are of the same machine.

    Raises:
        SystemExit: Some commands only, on another machine than that of the file.
    """
    commands = {}
    if len(names) < len(COMMANDS):
        kept = read(file)
        if kept["fingerprint"] != fingerprint():
            sys.exit("The file is of another machine: write all commands.")
        commands = kept["commands"]
    else:
        keep_finished_run(runner)
    commands |= {name: _said(runner, name) for name in names}
    text = json.dumps({"fingerprint": fingerprint(), "commands": commands}, separators=(",", ":"), sort_keys=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(names)} commands, {file.stat().st_size / 1000:.0f} kB, {sum(runner.cpu_seconds.values()):.0f} CPU-s")


def compare(file: Path, runner: Runner, names: list[str]) -> int:
    """Run commands and print what differs; the number of differences."""
    frozen = read(file)
    here = fingerprint()
    exact = here == frozen["fingerprint"]
    if not exact:
        other = {
            name: f"{frozen['fingerprint'].get(name)} → {here[name]}"
            for name in here
            if here[name] != frozen["fingerprint"].get(name)
        }
        print(f"Another machine ({other}): numbers may differ by {RELATIVE:g} of their size or {ABSOLUTE:g}.")
    sensitive = {command.name for command in COMMANDS if command.is_sensitive}
    total = 0
    for name in names:
        old, new = frozen["commands"].get(name, {"files": {}}), _said(runner, name)
        how = "exact" if exact else "shape" if name in sensitive else "close"
        found = differences(name, old, new, how=how)
        for difference in found[:MOST_LINES]:
            print(difference)
        if len(found) > MOST_LINES:
            print(f"{name}: … and {len(found) - MOST_LINES} more")
        if not exact:
            skipped = " and all numbers" if how == "shape" else ""
            print(f"{name}: {count_hashes(old)} hashes{skipped} skipped")
        total += len(found)
    print(f"{total} differences in {len(names)} commands, {sum(runner.cpu_seconds.values()):.0f} CPU-s")
    return total


def _said(runner: Runner, name: str) -> dict:
    values = runner.values(name)
    print(f"{name}: {len(values['files'])} files, {runner.cpu_seconds[name]:.1f} CPU-s", file=sys.stderr, flush=True)
    return values


def main() -> int:
    """Run the script; 0 without a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--smoke", action="store_true", help="Only the quick commands.")
    parser.add_argument("--only", action="append", choices=[command.name for command in COMMANDS], help="Only this one.")
    given = parser.parse_args()
    names = given.only or [command.name for command in COMMANDS if command.is_quick or not given.smoke]
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder))
        if given.action == "compare":
            return min(compare(given.file, runner, names), 1)
        write(given.file, runner, names)
        return 0


if __name__ == "__main__":
    sys.exit(main())
