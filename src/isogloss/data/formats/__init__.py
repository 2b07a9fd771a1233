"""Files of other people's making: the only room that knows their conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.data.formats.bitexts import read_bitext, stream_bitext, write_bitext
    from isogloss.data.formats.brackets import format_constituents, parse_constituents, read_constituents
    from isogloss.data.formats.conllu import format_treebank, parse_treebank, read_treebank
    from isogloss.data.formats.convert import BitextLike, as_bitext, as_gold, as_links, as_mentions, as_treebank
    from isogloss.data.formats.dictionaries import format_dictionary, parse_dictionary, read_dictionary
    from isogloss.data.formats.documents import read_documents
    from isogloss.data.formats.files import IsoglossWarning, atomic_write, open_lines, read_bytes
    from isogloss.data.formats.links import format_links, parse_links, read_links, write_links
    from isogloss.data.formats.mentions import format_mentions, parse_mentions, read_mentions
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".bitexts": "read_bitext stream_bitext write_bitext",
            ".brackets": "format_constituents parse_constituents read_constituents",
            ".conllu": "format_treebank parse_treebank read_treebank",
            ".convert": "BitextLike as_bitext as_gold as_links as_mentions as_treebank",
            ".dictionaries": "format_dictionary parse_dictionary read_dictionary",
            ".documents": "read_documents",
            ".files": "IsoglossWarning atomic_write open_lines read_bytes",
            ".links": "format_links parse_links read_links write_links",
            ".mentions": "format_mentions parse_mentions read_mentions",
        },
    )

__all__ = [
    "BitextLike",
    "IsoglossWarning",
    "as_bitext",
    "as_gold",
    "as_links",
    "as_mentions",
    "as_treebank",
    "atomic_write",
    "format_constituents",
    "format_dictionary",
    "format_links",
    "format_mentions",
    "format_treebank",
    "open_lines",
    "parse_constituents",
    "parse_dictionary",
    "parse_links",
    "parse_mentions",
    "parse_treebank",
    "read_bitext",
    "read_bytes",
    "read_constituents",
    "read_dictionary",
    "read_documents",
    "read_links",
    "read_mentions",
    "read_treebank",
    "stream_bitext",
    "write_bitext",
    "write_links",
]
