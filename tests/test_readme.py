"""Every code block of the README is run, in order, as its reader would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<lang>\w*)\n(?P<body>.*?)```", re.DOTALL
)


def blocks_by_section() -> dict[str, list[tuple[str, str, str | None]]]:
    """Section title -> its (language, text, file name) blocks."""
    sections: dict[str, list[tuple[str, str, str | None]]] = {}
    for part in re.split(r"^#+ ", (ROOT / "README.md").read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        found = [(m["lang"], m["body"], m["file"]) for m in FENCE.finditer(body)]
        if found:
            sections[title] = found
    return sections


SECTIONS = blocks_by_section()
HANDLED = {
    "coredata": ["bash"],
    "1. Preprocess: text to tokens": ["json", "bash"],
    "2. Batches, and an exact resume": ["python"],
    "3. PyTorch": ["python", "python"],
    "4. JAX": ["python"],
    "5. S3, and anything else fsspec knows": ["bash", "python", "python"],
    "Before a run, and when its loss jumps": ["bash", "python"],
    "Measured": ["bash"],
}


def test_every_block_is_run_here():
    assert {title: [b[0] for b in blocks] for title, blocks in SECTIONS.items()} == HANDLED


def run(argv: list[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command as a reader would, from `cwd`, with the installed or checked-out package."""
    packages = [ROOT, ROOT / "adapters" / "torch", ROOT / "adapters" / "jax"]
    path = os.pathsep.join([*map(str, packages), os.environ.get("PYTHONPATH", "")])
    bin_dir = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PATH": os.pathsep.join([str(cwd / "bin"), bin_dir, os.environ["PATH"]]),
        **(env or {}),
    }
    done = subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's directory: a corpus, GPT-2 style tokenizer files, and two tokenised sources."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    here = tmp_path_factory.mktemp("readme")
    (here / "bin").mkdir()
    command = here / "bin" / "coredata"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m coredata "$@"\n')
    command.chmod(0o755)

    for _, body, name in SECTIONS["1. Preprocess: text to tokens"]:
        if name:
            (here / name).write_text(body)

    small = Tokenizer(models.BPE())
    small.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=alphabet,
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    small.train_from_iterator(["the quick brown fox", "colourless green ideas"], trainer)
    small.model.save(str(here))

    shipped = ROOT / "coredata" / "text" / "assets" / "demo_tokenizer.json"
    (here / "tokenizer.json").write_bytes(shipped.read_bytes())
    for name in ("code", "prose"):
        lines = (json.dumps({"text": f"{name} document {i} " * (5 + i % 7)}) for i in range(300))
        (here / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        run(
            ["coredata", "preprocess", "--input", f"{name}.jsonl", "--output-prefix", name]
            + ["--tokenizer-model", "tokenizer.json", "--append-eod"],
            here,
        )
    return here


def test_the_make_targets_of_the_first_block_exist(tmp_path):
    lines = SECTIONS["coredata"][0][1].splitlines()
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    assert targets == ["demo", "test"]
    subprocess.run(["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True)


def test_preprocess(desk):
    bash = SECTIONS["1. Preprocess: text to tokens"][1][1]
    run(["bash", "-euc", bash], desk)
    assert (desk / "corpus_text_document.bin").stat().st_size > 0


RESUME = SECTIONS["2. Batches, and an exact resume"][0][1]


def test_resume(desk):
    check = """
import numpy as np
np.testing.assert_array_equal(batch["tokens"], train.get_batch(np.arange(8, 16))["tokens"])
"""
    run([sys.executable, "-c", RESUME + check], desk)


def test_pytorch(desk):
    block, flags = (body for _, body, _ in SECTIONS["3. PyTorch"])
    check = """
import torch
assert tokens.dtype == torch.int64 and tokens.shape == (4, 32)
assert (tokens.numpy() == train.get_batch(np.arange(4))["tokens"]).all()
"""
    check_flags = "assert [len(d) for d in (train, valid, test)] == [800, 9, 9]"
    parts = (RESUME, block, "import numpy as np", check, flags, check_flags)
    main = "\n".join("    " + line for line in "\n".join(parts).splitlines())
    script = desk / "pytorch.py"
    script.write_text(f"if __name__ == '__main__':\n{main}\n")
    run([sys.executable, str(script)], desk)


def test_jax(desk):
    block = SECTIONS["4. JAX"][0][1]
    check = """
assert len(batch["tokens"].addressable_shards) == 4 and batch["tokens"].shape == (8, 32)
assert (np.asarray(batch["tokens"]) == train.get_batch(np.arange(8))["tokens"]).all()
"""
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    run([sys.executable, "-c", RESUME + block + check], desk, devices)


@pytest.mark.slow
def test_s3(desk, s3_environment):
    bash, python, options = (
        body for _, body, _ in SECTIONS["5. S3, and anything else fsspec knows"]
    )
    upload = """
import s3fs
s3fs.S3FileSystem().mkdir("corpora")
s3fs.S3FileSystem().put("corpus.jsonl", "corpora/")
"""
    run([sys.executable, "-c", upload], desk, s3_environment)
    run(["bash", "-euc", bash], desk, s3_environment)
    out = run([sys.executable, "-c", python + "print(len(tokens))"], desk, s3_environment)
    assert int(out) > 5
    check = "from pathlib import Path\nprint(len(tokens), Path('blocks').is_dir())"
    out = run([sys.executable, "-c", python + options + check], desk, s3_environment)
    assert out.split()[1] == "True"


BEFORE = "Before a run, and when its loss jumps"


def test_before_a_run(desk):
    out = run(["bash", "-euc", SECTIONS[BEFORE][0][1]], desk)
    assert "prose_text_document" in out


def test_skipping(desk):
    check = """
assert len(train) == 1000 - 8 and state["consumed_samples"] == 8
with loader(rank=0, ranks=1, micro_batch_size=8) as batches:
    batches.load_state_dict(state)
    assert len(batches) == 123
"""
    run([sys.executable, "-c", RESUME + SECTIONS[BEFORE][1][1] + check], desk)


def test_the_measured_block_names_a_command_that_exists():
    assert SECTIONS["Measured"][0][1].split() == ["make", "bench"]
    subprocess.run(["make", "-n", "bench"], cwd=ROOT, check=True, capture_output=True)
