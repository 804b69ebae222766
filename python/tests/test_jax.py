"""JAX, in a separate process: it has threads, and would warn about every fork in other tests."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from conftest import REQUIRED

IS_MISSING = "jax" not in REQUIRED and importlib.util.find_spec("jax") is None


@pytest.mark.skipif(IS_MISSING, reason="JAX is not installed")
def test_the_cases_of_jax_pass():
    cases = pathlib.Path(__file__).with_name("jax_cases.py")
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
