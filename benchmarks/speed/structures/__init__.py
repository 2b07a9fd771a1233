"""Speed of structures: ours beside peers, at sizes from which a slope can be read."""
