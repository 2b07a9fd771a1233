"""Classifiers of documents that are adapted to a new domain, and what can be said of the way there."""

from isogloss.tasks.adapt.classifier import DocumentClassifier
from isogloss.tasks.adapt.distance import (
    Diagnosis,
    Distance,
    diagnose,
    losses,
    proxy_a_distance,
    which_domains_to_label,
    which_to_label,
)

__all__ = [
    "Diagnosis",
    "Distance",
    "DocumentClassifier",
    "diagnose",
    "losses",
    "proxy_a_distance",
    "which_domains_to_label",
    "which_to_label",
]
