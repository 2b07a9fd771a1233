"""Quality: one command makes one row."""
