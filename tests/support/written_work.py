"""Work of a sweep that writes a file a job, for tests; worker processes can import this module."""

from dataclasses import dataclass
from pathlib import Path

from crossgraft.errors import StorageError
from crossgraft.running.jobs import Work


@dataclass
class Written(Work):
    """Squares numbers into files, named by job and key; other specs are errors to raise."""

    folder: Path

    def read_back(self, job):
        path = self.folder / f"{job.name}-{job.key}"
        return int(path.read_text()) if path.is_file() else None

    def do(self, job):
        if isinstance(job.spec, BaseException):
            raise job.spec
        if not self.folder.is_dir():
            raise StorageError("The disk is full.")
        (self.folder / f"{job.name}-{job.key}").write_text(str(job.spec**2))
        with (self.folder / "done").open("a") as file:
            file.write(f"{job.name}\n")
        return job.spec**2
