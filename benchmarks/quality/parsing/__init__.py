"""Dependency parsers beside UDPipe 1 and MaltParser, on treebanks alone."""
