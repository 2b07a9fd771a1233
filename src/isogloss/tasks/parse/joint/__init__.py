"""Tags, morphology and trees in one model: `JointMorphologyParser`."""

from isogloss.tasks.parse.joint.dictionary import TagDictionary
from isogloss.tasks.parse.joint.model import JointMorphologyParser, Posteriors
from isogloss.tasks.parse.joint.schema import Schema

__all__ = ["JointMorphologyParser", "Posteriors", "Schema", "TagDictionary"]
