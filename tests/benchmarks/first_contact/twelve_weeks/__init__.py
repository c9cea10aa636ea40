"""Twelve weeks of documents at one invented hospital, the experts' answers, and weeks in which those are poisoned."""

from benchmarks.first_contact.twelve_weeks.experts import ExpertAnswer, answer, is_right
from benchmarks.first_contact.twelve_weeks.hospitals import list_hospitals
from benchmarks.first_contact.twelve_weeks.labelled_sources import list_sources
from benchmarks.first_contact.twelve_weeks.poisoning import PoisonedWeek, Reading, list_poison_kinds, poison
from benchmarks.first_contact.twelve_weeks.replay import WEEKS, ReplayDocument, ReplaySegment, build_replay

__all__ = [
    "WEEKS",
    "ExpertAnswer",
    "PoisonedWeek",
    "Reading",
    "ReplayDocument",
    "ReplaySegment",
    "answer",
    "build_replay",
    "is_right",
    "list_hospitals",
    "list_poison_kinds",
    "list_sources",
    "poison",
]
