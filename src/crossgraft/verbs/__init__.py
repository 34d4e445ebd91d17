"""Where the machinery of verbs was."""

from crossgraft.faces import lazy_face

lazy_face(__name__, moved={"verb": "crossgraft.running", "Run": "crossgraft.running"})
