"""Tags, morphology and trees in one model: `JointMorphologyParser`."""

from isogloss.tasks.parse.joint.analyses import AnalysisDictionary
from isogloss.tasks.parse.joint.model import JointMorphologyParser, Posteriors
from isogloss.tasks.parse.joint.schema import Schema

__all__ = ["AnalysisDictionary", "JointMorphologyParser", "Posteriors", "Schema"]
