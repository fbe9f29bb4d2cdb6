"""Who may import whom, what importing costs, and what it must not pull in."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "coredata"

PURE = {"indices", "blending", "fim", "masking", "varlen", "sampling"}
NEUTRAL = {"_bits", "_kernel", "_typing"}
ALLOWED = {
    **{room: PURE | NEUTRAL for room in PURE},
    "storage": NEUTRAL,
    "formats": {"storage"} | NEUTRAL,
    "text": {"storage"} | NEUTRAL,
    "datasets": PURE | NEUTRAL | {"formats", "storage", "text"},
    "loading": {"sampling", "datasets.protocol"} | NEUTRAL,
    "preprocess": {"formats", "storage", "text"} | NEUTRAL,
}
"""For each room, the rooms (or single modules) of coredata that it may import besides itself.
`tools` and `testing` sit on top and may import anything of the core."""

FRAMEWORKS = {"torch", "jax", "jaxlib", "megatron", "transformers", "tensorflow"}
ADAPTERS = {"coredata_torch", "coredata_jax"}
IO_MODULES = {"fsspec", "s3fs", "io", "os", "pathlib", "shutil", "socket", "tempfile", "mmap"}


def imports_of(path: Path) -> set[str]:
    """Absolute dotted names that a file imports, anywhere in it."""
    names = set()
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def files_of(room: str) -> list[Path]:
    files = sorted((CORE / room).rglob("*.py"))
    assert files, f"no files in coredata/{room}: the check would pass on nothing"
    return files


def inner(name: str) -> str | None:
    """`coredata.formats.writer` -> `formats.writer`; None for anything outside the core."""
    return name.removeprefix("coredata.") if name.startswith("coredata.") else None


def is_allowed(target: str, room: str) -> bool:
    return any(target == a or target.startswith(a + ".") for a in {room, *ALLOWED[room]})


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_the_rooms_it_may_know(room):
    wrong = {
        f"{path.relative_to(ROOT)} imports coredata.{target}"
        for path in files_of(room)
        for name in imports_of(path)
        if (target := inner(name)) and not is_allowed(target, room)
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("room", sorted(PURE))
def test_pure_rooms_do_no_io(room):
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files_of(room)
        for name in imports_of(path)
        if name.split(".")[0] in IO_MODULES
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_the_core_never_imports_a_framework():
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(CORE.rglob("*.py"))
        for name in imports_of(path)
        if name.split(".")[0] in FRAMEWORKS | ADAPTERS
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_every_room_is_checked():
    rooms = {path.parent.name for path in CORE.glob("*/__init__.py")}
    assert rooms == set(ALLOWED) | {"tools", "testing"}


def test_the_check_sees_a_wrong_arrow(tmp_path):
    assert not is_allowed("datasets.gpt", "formats")
    assert not is_allowed("formats", "indices")
    assert not is_allowed("datasets.gpt", "loading")
    assert is_allowed("datasets.protocol.Batch", "loading")


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_core_is_quick():
    code = "import time; t = time.perf_counter(); import coredata; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.3


ROOMS = (
    "blending datasets fim formats indices loading masking preprocess sampling storage text varlen"
)


def test_importing_every_room_pulls_in_no_framework_and_no_backend_and_compiles_nothing():
    code = f"""
import importlib, sys
for room in {ROOMS!r}.split():
    importlib.import_module("coredata." + room)
unwanted = {sorted(FRAMEWORKS | {"s3fs", "gcsfs", "aiobotocore", "boto3", "pyarrow", "fsspec"})!r}
print(*[name for name in unwanted if name in sys.modules])
import gc
from numba.core.registry import CPUDispatcher
found = [d for d in gc.get_objects() if isinstance(d, CPUDispatcher)
         and d.py_func.__module__.startswith("coredata")]
assert len(found) > 5, "the search for compiled functions found none"
print(*[d.py_func.__qualname__ for d in found if d.signatures])
"""
    assert run_python(code).split() == []
