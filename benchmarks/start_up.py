"""CPU-seconds of `import crossgraft` and `crossgraft --help`, beside a bare Python. Command: python benchmarks/start_up.py.

Targets: import ≤ 0.1, help ≤ 0.3 CPU-seconds; neither imports torch, timm or scikit-learn.
"""

import argparse
import resource
import statistics
import subprocess
import sys


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one run each")
    runs = 1 if parser.parse_args().smoke else 7
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import crossgraft": [sys.executable, "-c", "import crossgraft"],
        "crossgraft --help": [sys.executable, "-m", "crossgraft", "--help"],
        "crossgraft rank --help": [sys.executable, "-m", "crossgraft", "rank", "--help"],
    }
    floor = 0.0
    for name, command in commands.items():
        seconds = statistics.median(cpu_seconds(command) for _ in range(runs))
        floor = floor or seconds
        print(f"{name:24s} {seconds:6.3f} CPU-s   {seconds / floor:5.1f} × bare Python")


if __name__ == "__main__":
    main()
