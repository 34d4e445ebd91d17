"""Where ``publish`` was."""

from crossgraft.faces import lazy_face

lazy_face(__name__, moved={"publish": "crossgraft.running"})
