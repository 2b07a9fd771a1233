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
from isogloss.tasks.adapt.treebanks import Guidelines, TreebankDiagnosis, diagnose_treebanks

__all__ = [
    "Diagnosis",
    "Distance",
    "DocumentClassifier",
    "Guidelines",
    "TreebankDiagnosis",
    "diagnose",
    "diagnose_treebanks",
    "losses",
    "proxy_a_distance",
    "which_domains_to_label",
    "which_to_label",
]
