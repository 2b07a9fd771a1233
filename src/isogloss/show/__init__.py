"""Pictures of alignments and trees, drawn from plain dictionaries: for a notebook, a terminal, or a page to pass on.

A dictionary has the keys of `isogloss.data.Alignment.as_dict`: `source` and `target` (lists of words), `links`
(``[i, j]`` or ``[i, j, probability]``, from 0), and may have

- `posterior`: probabilities [source][target], drawn as dots where there is no link;
- `possible`: links an annotator was not sure of, when the dictionary itself is a gold alignment;
- `gold`: ``{"sure": [[i, j], ...], "possible": [[i, j], ...]}``, drawn beneath the links and compared with them;
- `other` and `names`: the links of a second system, and what the two are called;
- `reasons`: why links are there or not, for those where systems differ: a list of ``{"source": i, "target": j,
  "features": [[name, contribution], ...], "probability": p, "text": words}``, the last two if known;
- `line`, `title`, `confidence`: where the pair is from and how sure the model is of it;
- `languages`: two BCP 47 tags, so that a browser picks the right glyphs (Chinese and Japanese share code points).

>>> from isogloss import show
>>> print(show.terminal({"source": ["das", "Haus"], "target": ["the", "house"], "links": [[0, 0, 0.9], [1, 1, 0.4]]}))
      the
      │ house
      │ │
 das ██ ·
Haus  ·▒▒
2 links, mean probability 0.65
░ ▒ ▓ █ probability below 1/4, 1/2, 3/4, and above

Trees have other dictionaries, which `isogloss.show.trees` describes and `isogloss.data.Treebank.as_dict` makes, and
functions of their own: `tree_terminal`, `tree_svg` and `tree_page`; and so have trees of constituents
(`isogloss.show.constituents`): `constituents_terminal`, `constituents_svg` and `tree_page`. A sentence and its
translation with trees, links and what they carry are drawn by `projection_terminal`, `projection_svg` and
`projection_page` (`isogloss.show.projection`). Names are drawn by `names_terminal`, `names_svg` and `names_page`
(`isogloss.show.names`). Threads through dated documents are drawn by `threads_terminal`, `threads_svg` and
`threads_page` (`isogloss.show.threads`), topics of documents by `topics_page` (`isogloss.show.topics`), and what is
lost from one domain to another by `diagnosis_page` (`isogloss.show.diagnosis`). `table` shows the first rows of
anything long.
"""

from isogloss.show._console import terminal
from isogloss.show._figure import alignment
from isogloss.show._page import page, write_page
from isogloss.show._table import table
from isogloss.show._tree_page import tree_page
from isogloss.show.constituents import constituents_svg, constituents_terminal
from isogloss.show.diagnosis import diagnosis_page
from isogloss.show.names import names_page, names_svg, names_terminal
from isogloss.show.projection import projection_page, projection_svg, projection_terminal
from isogloss.show.threads import threads_page, threads_svg, threads_terminal
from isogloss.show.topics import topics_page
from isogloss.show.trees import tree_svg, tree_terminal

__all__ = [
    "alignment", "constituents_svg", "constituents_terminal", "diagnosis_page", "names_page", "names_svg",
    "names_terminal", "page", "projection_page", "projection_svg",
    "projection_terminal", "table", "terminal", "threads_page", "threads_svg", "threads_terminal", "topics_page",
    "tree_page", "tree_svg", "tree_terminal", "write_page",
]  # fmt: skip
