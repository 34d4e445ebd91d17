"""One self-contained HTML page from the records of a run directory."""

from crossgraft.faces import lazy_face

lazy_face(__name__)
