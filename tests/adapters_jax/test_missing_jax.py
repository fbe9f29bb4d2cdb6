"""Without JAX, the adapter says how to get it."""

import sys

import pytest


@pytest.mark.parametrize("module", ["coredata_jax", "coredata_jax.ranks"])
def test_the_error_names_the_extra(monkeypatch, module):
    for name in [name for name in sys.modules if name.split(".")[0] == "coredata_jax"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)  # As if it were not installed.
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[jax\]'"):
        __import__(module)
