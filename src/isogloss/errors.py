"""The few exceptions that users meet.

Every message names the place, the finding and the next thing to do. The command line turns `DataError` and its
children into exit status 1, `UsageError` and its children into 2, and never shows a traceback for either.
"""


class IsoglossError(Exception):
    """Something the user can mend; the message says how."""

    exit_code = 1


class DataError(IsoglossError):
    """The contents of a file are not what they should be."""


class BitextError(DataError):
    """A parallel text cannot be read: unequal line counts, wrong encoding, wrong separator."""


class LinksError(DataError):
    """A file of links cannot be read, or does not fit its text."""


class TreebankError(DataError):
    """A treebank cannot be read: a missing column, a wrong number or head, a sentence that is no tree."""


class MentionsError(DataError):
    """A file of names or relations cannot be read, or does not fit its text."""


class DocumentsError(DataError):
    """Documents cannot be read: ids that are given twice, a date that is none, unequal numbers of lines."""


class SegmentationError(DataError):
    """A file of segmented words cannot be read, or does not fit its text."""


class ModelError(DataError):
    """A saved model is damaged, foreign, or of a version we do not read."""


class UsageError(IsoglossError):
    """The call itself is wrong: a missing file, two options that exclude each other."""

    exit_code = 2


class ParameterError(UsageError):
    """An option has a value that makes no sense."""


class WorkerError(IsoglossError):
    """Work that was handed to other processes failed there; the message has their words."""
