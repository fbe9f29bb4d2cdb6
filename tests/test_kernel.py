"""Where compiled code is kept, and what it costs before it runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPILE_COLD, LOAD_WARM = 5.0, 0.3
"""Seconds on an idle machine. The test allows four times as much: machines of a CI are busy."""

SHUFFLE = """
import sys
import numpy as np
from numba.core import event
from coredata.indices import mt19937_seed, shuffle_in_place
compiled = []
class Watch(event.Listener):
    def on_start(self, event): compiled.append(event)
    def on_end(self, event): pass
event.register("numba:compile", Watch())
numbers = np.arange(1000)
shuffle_in_place(numbers, mt19937_seed(3))
wanted = np.arange(1000)
np.random.RandomState(3).shuffle(wanted)
assert np.array_equal(numbers, wanted)
print(len(compiled), "numba.np.linalg" in sys.modules)
"""

COMPILE_WITH_LOADED = """
import numba
import numpy as np
from coredata.indices import mt19937_seed, next32
state = mt19937_seed(3)
next32(state)
assert next32.stats.cache_hits, "not loaded"
@numba.njit
def next_two(state):
    return next32(state), np.sqrt(np.float64(next32(state)))
_, b, c = np.random.RandomState(3).randint(0, 2**32, 3, dtype=np.uint32)
assert next_two(state) == (b, np.sqrt(np.float64(c)))
"""

AS_NUMBA_LOADS = """
import coredata._kernel_cache
coredata._kernel_cache.LOADS_ALONE = False
"""

FIRST_RUN_IN_THREADS = """
import threading
import numpy as np
import slow_extension
from numba.core import event
from coredata.indices import mt19937_seed, shuffle_in_place
compiled = []
class Watch(event.Listener):
    def on_start(self, event): compiled.append(bool(slow_extension.registering))
    def on_end(self, event): pass
event.register("numba:compile", Watch())
together = threading.Barrier(4)
done = []
def run(dtype):
    numbers, state = np.arange(1000, dtype=dtype), mt19937_seed(3)
    together.wait()
    shuffle_in_place(numbers, state)
    done.append(dtype)
threads = [threading.Thread(target=run, args=[dtype]) for dtype in ("i4", "i8", "u4", "u8")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(done), len(compiled), sum(compiled))
"""

SELFCHECK = """
from numba.core import event
from coredata.tools.main import main
compiled = []
class Watch(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"])
    def on_end(self, event): pass
event.register("numba:compile", Watch())
assert main(["selfcheck", "--json"]) == 0
print()
print(len(compiled))
"""


def run_python(code, directory, **environment):
    known = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=directory,
        env={**known, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def unwritable_package(tmp_path):
    """A copy of the package in which no cache can be made beside the source, even by root."""
    shutil.copytree(
        ROOT / "coredata", tmp_path / "coredata", ignore=shutil.ignore_patterns("__pycache__")
    )
    for package in (tmp_path / "coredata").rglob("*.py"):
        (package.parent / "__pycache__").write_text("not a directory")
    return tmp_path


def test_a_package_that_cannot_be_written_uses_the_cache_of_the_user(unwritable_package, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    assert int(run_python(SHUFFLE, unwritable_package, **where).split()[0]) > 0
    assert list(home.rglob("*.nbi"))
    assert int(run_python(SHUFFLE, unwritable_package, **where).split()[0]) == 0


def test_without_any_cache_kernels_are_compiled_in_memory(unwritable_package, tmp_path):
    home = tmp_path / "home"
    home.write_text("not a directory")
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home)}
    assert int(run_python(SHUFFLE, unwritable_package, **where).split()[0]) > 0


def test_compiled_code_is_loaded_without_what_compiles(tmp_path):
    where = {"NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, compilers = run_python(SHUFFLE, ROOT, **where).split()
    assert (int(compiled) > 0, compilers) == (True, "True")
    assert run_python(SHUFFLE, ROOT, **where).split() == ["0", "False"]


def test_kernels_are_compiled_with_kernels_that_were_loaded(tmp_path):
    draw = "from coredata.indices import mt19937_seed, next32; next32(mt19937_seed(3))"
    run_python(draw, ROOT, NUMBA_CACHE_DIR=str(tmp_path))
    run_python(COMPILE_WITH_LOADED, ROOT, NUMBA_CACHE_DIR=str(tmp_path))


def test_other_releases_of_numba_load_in_their_own_way(tmp_path):
    where = {"NUMBA_CACHE_DIR": str(tmp_path)}
    run_python(SHUFFLE, ROOT, **where)
    assert run_python(AS_NUMBA_LOADS + SHUFFLE, ROOT, **where).split() == ["0", "True"]


@pytest.mark.parametrize("cache", [True, False])
def test_threads_compile_after_extensions_have_registered(
    unwritable_package, install_slow_extension, tmp_path, cache
):
    install_slow_extension(unwritable_package)
    home = tmp_path / "home"
    home.mkdir() if cache else home.write_text("not a directory")
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    done, compiled, early = run_python(FIRST_RUN_IN_THREADS, unwritable_package, **where).split()
    assert (int(done), int(early)) == (4, 0)
    assert int(compiled) >= 4
    assert bool(list(tmp_path.rglob("*.nbi"))) == cache


@pytest.mark.slow
def test_all_kernels_of_the_selfcheck_run_when_they_were_loaded(tmp_path):
    compiled = [
        int(run_python(SELFCHECK, ROOT, NUMBA_CACHE_DIR=str(tmp_path)).split()[-1])
        for _ in range(2)
    ]
    assert compiled[0] > 40
    assert compiled[1] == 0


@pytest.mark.slow
def test_compiling_all_of_a_gpt_run_takes_seconds_and_loading_it_little(tmp_path):
    code = "import json; from scripts.bench.compile_time import measure; "
    code += f"print(json.dumps([measure({str(tmp_path)!r}) for _ in range(2)]))"
    cold, warm = json.loads(run_python(code, ROOT))
    assert 0 < cold["extra"] < 4 * COMPILE_COLD
    assert warm["extra"] < 4 * LOAD_WARM
    assert warm["compile"] == 0
