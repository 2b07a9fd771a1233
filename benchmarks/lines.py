"""Lines of code, by package: without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    """Lines that hold code: not blank, not a comment alone, not part of a docstring.

    A string that stands by itself below an attribute says what it is, as a docstring does, and is no code either.

    Examples
    --------
    >>> code_lines("two = 2  # and no more\\n\\n# a comment\\nthree = (\\n    3\\n)\\n")
    4
    >>> code_lines("def two():\\n    'The number.'\\n    return 2\\n")
    2
    """
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def lines_by_package(folder: Path) -> dict[str, int]:
    """Lines of code of each package of a checkout; those of tasks one by one."""
    root, found = folder / "src/isogloss", dict[str, int]()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts[:-1]
        name = "/".join(parts[:2] if parts[:1] == ("tasks",) else parts[:1]) or "(no package)"
        found[name] = found.get(name, 0) + code_lines(path.read_text(encoding="utf-8"))
    return found
