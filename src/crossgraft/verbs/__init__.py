"""The public verbs, one file each: everything a command does, from its options to what it returns and writes."""

from crossgraft.running.verb import Run as Run
from crossgraft.running.verb import verb as verb
