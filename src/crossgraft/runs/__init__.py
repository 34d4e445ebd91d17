"""Run directories: one command, one folder, resumable and never half-written."""

from crossgraft.runs.atomic import write_atomically as write_atomically
from crossgraft.runs.command_run import open_command_run as open_command_run
from crossgraft.runs.run_directory import RunDirectory as RunDirectory
from crossgraft.runs.run_directory import open_run as open_run
