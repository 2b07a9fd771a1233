"""Two languages at once: parsers of both sides and an aligner that listen to each other, and models that teach."""

from isogloss.tasks.joint.bilingual import BilingualParser
from isogloss.tasks.joint.constituents import JointConstituentAligner
from isogloss.tasks.joint.multiview import Multiview
from isogloss.tasks.joint.pairs import JointParserAligner

__all__ = ["BilingualParser", "JointConstituentAligner", "JointParserAligner", "Multiview"]
