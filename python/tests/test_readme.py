"""Runs the examples of the README and the guide unchanged."""

import ast
import importlib.util
import os
import re
import subprocess
import sys

import pytest

from conftest import REQUIRED, ROOT

GUIDE = sorted(page for page in (ROOT / "docs/src/python").glob("*.md") if page.name != "benchmark.md")
PAGES = [ROOT / "python/README.md", ROOT / "README.md", *GUIDE]
# import names
OPTIONAL = ["torch", "jax", "pyarrow", "polars", "pandas", "duckdb", "h5py", "lmdb", "blosc2", "datasets"]


def names(block, context):
    """Returns the names that a block uses or, with ``ast.Store``, defines."""
    found = {node.id for node in ast.walk(block) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
    for node in ast.walk(block):
        if context is ast.Store and isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif context is ast.Store and isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def runnable(blocks):
    """Returns the blocks that need neither a missing package nor a name that such a block defines."""
    missing = [name for name in OPTIONAL if name not in REQUIRED and importlib.util.find_spec(name) is None]
    needs = [re.compile(rf"\b(import|from) (tensilo\.)?{name}\b|\.{name}\(") for name in missing]
    left_out, selected = set(), []
    for block in blocks:
        tree = ast.parse(block)
        made = names(tree, ast.Store)
        if any(need.search(block) for need in needs) or (names(tree, ast.Load) - made) & left_out:
            left_out |= made
        else:
            left_out -= made
            selected.append(block)
    return selected


def test_examples_that_need_what_is_missing_are_left_out(monkeypatch):
    monkeypatch.setattr(f"{__name__}.OPTIONAL", ["no_such_package"])
    blocks = ["import os", "import no_such_package as n\nx = n.y()", "print(x)", "x = 1\nprint(x)", "print(os, x)"]
    assert runnable(blocks) == [blocks[0], blocks[3], blocks[4]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    os.symlink(ROOT / "tests", tmp_path / "tests")
    (tmp_path / "page.py").write_text("\n".join(runnable(blocks)), encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
