"""Run directories, resumable and never half-written, and the store of known results."""

from crossgraft.rank.results_file import add_known_results as add_known_results
from crossgraft.rank.results_file import known_results_file as known_results_file
from crossgraft.rank.results_file import read_known_results as read_known_results
from crossgraft.running.command_run import open_command_run as open_command_run
from crossgraft.running.ending import PAGE_FILE as PAGE_FILE
from crossgraft.running.ending import THUMBNAILS_FILE as THUMBNAILS_FILE
from crossgraft.running.ending import Publish as Publish
from crossgraft.running.run_directory import RunDirectory as RunDirectory
from crossgraft.running.run_directory import open_run as open_run
from crossgraft.storage.atomic import write_atomically as write_atomically
