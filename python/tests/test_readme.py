"""The examples of the README and the guide, run as they are."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from conftest import REQUIRED, ROOT

PAGES = [ROOT / "python/README.md", ROOT / "README.md", *sorted((ROOT / "docs/src/python").glob("*.md"))]
# by the name of the import
OPTIONAL = ["torch", "jax", "pyarrow", "polars", "pandas", "duckdb", "h5py", "lmdb", "blosc2", "datasets"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks or page == ROOT / "README.md"
    os.symlink(ROOT / "tests", tmp_path / "tests")
    missing = [name for name in OPTIONAL if name not in REQUIRED and importlib.util.find_spec(name) is None]
    # an example that needs what is missing is left out
    needs = [rf"\b(import|from) (tensilo\.)?{name}\b|\.{name}\(" for name in missing]
    blocks = [block for block in blocks if not any(re.search(need, block) for need in needs)]
    program = "\n".join(blocks)
    (tmp_path / "page.py").write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
