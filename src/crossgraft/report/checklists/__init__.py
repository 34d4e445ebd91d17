"""Checklists of reporting guidelines, one file each, and what of them the records of runs answer.

A checklist asks for topics; the room of a kind of record says what a run answers about a topic (``Kind.answers``). So neither
knows the other: a new checklist is one file here (or an entry point ``crossgraft.checklists``), a new kind of record one mapping.
"""

from crossgraft.registry import Registry
from crossgraft.report.checklists.checklist import AnswerOf as AnswerOf
from crossgraft.report.checklists.checklist import Checklist as Checklist
from crossgraft.report.checklists.checklist import ChecklistItem as ChecklistItem
from crossgraft.report.checklists.checklist import Topic as Topic
from crossgraft.report.checklists.claim import CLAIM
from crossgraft.report.checklists.tripod_ai import TRIPOD_AI

CHECKLISTS: Registry[Checklist] = Registry("checklist", group="crossgraft.checklists", plugin_type=Checklist)
"""By the names that ``report --checklist`` takes."""

for checklist in (CLAIM, TRIPOD_AI):
    CHECKLISTS.add(checklist.name, checklist)
