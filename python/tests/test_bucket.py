"""Runs every block of "From a Parquet bucket" in docs/src/objects.md, in order, against an S3 server."""

import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import tensilo as ts
from conftest import ROOT, optional

boto3 = optional("boto3")
optional("moto.server")
optional("ray")
optional("torch")
pa = optional("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BIN = pathlib.Path(sys.executable).parent


def blocks():
    """Returns the languages and the texts of the blocks."""
    chapter = (ROOT / "docs/src/objects.md").read_text()
    section = chapter.split("## From a Parquet bucket")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """Starts a server with an empty bucket, and returns a client."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with open(tmp_path / "moto.log", "wb") as log:
        process = subprocess.Popen([BIN / "moto_server", "-p", str(port)], stdout=log, stderr=log)
    try:
        client = boto3.client("s3")
        for _ in range(600):
            try:
                client.create_bucket(Bucket="bucket")
                break
            except Exception:
                time.sleep(0.1)
        yield client
    finally:
        process.kill()
        process.wait()


def put(client, key, first, tmp_path):
    """Uploads a Parquet file of 500 samples."""
    numbers = np.arange(first, first + 500)
    embeddings = np.random.default_rng(first).standard_normal((500, 32), dtype=np.float32)
    table = pa.table({"embedding": list(embeddings), "label": numbers % 10})
    pq.write_table(table, tmp_path / "file.parquet")
    client.upload_file(str(tmp_path / "file.parquet"), "bucket", key)


def test_every_block_of_the_page(server, tmp_path):
    for i in range(3):
        put(server, f"raw/{i}.parquet", 500 * i, tmp_path)
    put(server, "later/3.parquet", 1500, tmp_path)

    def run(*command):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        # PyTorch 2.15 with gloo sometimes ends like this at exit, also without this package
        is_torch_at_exit = "terminate called without an active exception" in ran.stderr
        assert ran.returncode == 0 or is_torch_at_exit, f"{command}: {ran.stdout}\n{ran.stderr}"
        return ran.stdout

    [convert, by_ray, append, look, train, start, resume] = blocks()
    assert [kind for kind, _ in blocks()] == ["sh", "python", "sh", "sh", "python", "sh", "python"]
    run("bash", "-ec", convert[1])
    run(sys.executable, "-c", by_ray[1])
    converted, by_ray = ts.open("s3://bucket/train"), ts.open("s3://bucket/train-by-ray")
    assert len(converted) == len(by_ray) == 1500
    assert converted["embedding"].dtype == "bf16"
    np.testing.assert_array_equal(by_ray["label"].take(range(1500)).numpy(), np.arange(1500) % 10)
    run("bash", "-ec", append[1])
    assert len(ts.open("s3://bucket/train")) == 2000
    shown = run("bash", "-ec", look[1])
    assert "embedding" in shown
    (tmp_path / "train.py").write_text(train[1])
    trained = run("bash", "-ec", start[1])
    assert "epoch 1: loss" in trained
    again = train[1].replace("range(loader.epoch, 2)", "range(loader.epoch, 3)")
    before, loop, after = again.partition("for epoch in")
    (tmp_path / "train.py").write_text(before + resume[1] + loop + after)
    resumed = run("bash", "-ec", start[1])
    assert "epoch 2: loss" in resumed
    assert "epoch 1:" not in resumed
