"""Files of other people's making: the only room that knows their conventions."""

from isogloss.data.formats.bitexts import read_bitext, stream_bitext, write_bitext
from isogloss.data.formats.convert import as_bitext
from isogloss.data.formats.files import IsoglossWarning, atomic_write, open_lines, read_bytes
from isogloss.data.formats.links import format_links, parse_links, read_links, write_links

__all__ = [
    "IsoglossWarning",
    "as_bitext",
    "atomic_write",
    "format_links",
    "open_lines",
    "parse_links",
    "read_bitext",
    "read_bytes",
    "read_links",
    "stream_bitext",
    "write_bitext",
    "write_links",
]
