"""Constituency parsing: trees of constituents, learnt from bracketed trees."""

from isogloss.tasks.parse.constituency.parser import ConstituencyParser

__all__ = ["ConstituencyParser"]
