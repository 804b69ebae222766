"""Compiles the kernels to compiled/, and prints registers, spills and memory.

The crate contains machine code for the architectures below, and PTX for later
ones, so users need no compiler. The compiler comes from PyPI in pinned
versions. Sources and versions determine every byte of the output, so a digest
of them tells whether compiled/ is up to date. --check compiles, compares and
changes nothing.

Machine code and PTX of CUDA 13.0 need a driver of release 580 or later.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILED = HERE / "compiled"
ARCHITECTURES = [80, 86, 89, 90, 100, 120]
PTX = 80
PACKAGES = [
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-nvvm==13.0.88",
    "zstandard==0.25.0",
]


def compiler(folder):
    """Installs the compiler. Returns its folder, and a Python that has zstandard."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(pip, check=True)
    return next(folder.glob("lib/python*/site-packages/nvidia/cu13")), python


def compiled(toolkit, *options):
    """Compiles decode.cu. Returns the output, and the report of the assembler."""
    with tempfile.NamedTemporaryFile() as output:
        command = [toolkit / "bin/nvcc", "-std=c++17", f"-I{toolkit / 'include'}", *options]
        command += ["-Xptxas", "-v", "-o", output.name, "decode.cu"]
        run = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
        return Path(output.name).read_bytes(), run.stderr


def row(name, report, size):
    """Returns a row of the table: the resources of the kernel, and the spills of all functions."""
    used = re.search(r"Used (\d+) registers.*?(\d+) bytes cumulative stack size, (\d+) bytes smem", report)
    spills = sum(int(number) for number in re.findall(r"(\d+) bytes spill", report))
    registers, stack, shared = used.groups() if used else ("-", "-", "-")
    return f"| {name} | {registers} | {spills} | {stack} | {shared} | {size} |"


def sources():
    """Returns a digest of the sources and this script. tests/compiled.rs computes the same."""
    digest = hashlib.sha256()
    for path in sorted([*HERE.glob("*.h"), HERE / "build.py", HERE / "decode.cu"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def zstd(python, method, data):
    """Applies a method of zstandard to data, in the Python that has it."""
    code = f"import sys, zstandard; sys.stdout.buffer.write(zstandard.{method}(sys.stdin.buffer.read()))"
    return subprocess.run([python, "-c", code], input=data, check=True, capture_output=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with compiled/")
    parser.add_argument("--venv", type=Path, help="where the compiler is or will be installed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        toolkit, python = compiler(chosen.venv or Path(temporary))
        outputs = {}
        print("| architecture | registers | spills | stack | shared memory | bytes |\n|---|--:|--:|--:|--:|--:|")
        for architecture in ARCHITECTURES:
            code, report = compiled(toolkit, f"-arch=sm_{architecture}", "-cubin")
            outputs[f"sm_{architecture}.cubin.zst"] = code
            print(row(f"sm_{architecture}", report, len(code)), flush=True)
        code, report = compiled(toolkit, f"-arch=compute_{PTX}", "-ptx")
        outputs[f"compute_{PTX}.ptx.zst"] = code
        print(row(f"compute_{PTX}", report, len(code)))
        if chosen.check:
            expand = "ZstdDecompressor().decompress"
            committed = {name: zstd(python, expand, (COMPILED / name).read_bytes()) for name in outputs}
            stale = [name for name, code in outputs.items() if committed[name] != code]
            stale += [] if (COMPILED / "sources").read_text().strip() == sources() else ["sources"]
            sys.exit(f"compiled/ is out of date: {', '.join(stale)}; run build.py" if stale else 0)
        COMPILED.mkdir(exist_ok=True)
        for name, code in outputs.items():
            (COMPILED / name).write_bytes(zstd(python, "ZstdCompressor(level=19).compress", code))
        (COMPILED / "sources").write_text(sources() + "\n")


if __name__ == "__main__":
    main()
