"""Classifiers of documents that are adapted to a new domain, and what can be said of the way there."""

from isogloss.tasks.adapt.classifier import DocumentClassifier

__all__ = ["DocumentClassifier"]
