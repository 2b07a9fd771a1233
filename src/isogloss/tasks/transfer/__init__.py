"""What is known of one side, carried to the other through links."""

from isogloss.tasks.transfer.markup import Guess, Placement, Tag, place_markup, strip_markup, transfer_markup

__all__ = ["Guess", "Placement", "Tag", "place_markup", "strip_markup", "transfer_markup"]
