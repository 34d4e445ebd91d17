"""Run directories, resumable and never half-written, and the store of known results."""

from crossgraft.runs.command_run import open_command_run as open_command_run
from crossgraft.runs.known_results import add_known_results as add_known_results
from crossgraft.runs.known_results import known_results_file as known_results_file
from crossgraft.runs.known_results import read_known_results as read_known_results
from crossgraft.runs.publish import PAGE_FILE as PAGE_FILE
from crossgraft.runs.publish import THUMBNAILS_FILE as THUMBNAILS_FILE
from crossgraft.runs.publish import Publish as Publish
from crossgraft.runs.run_directory import RunDirectory as RunDirectory
from crossgraft.runs.run_directory import open_run as open_run
from crossgraft.storage.atomic import write_atomically as write_atomically
