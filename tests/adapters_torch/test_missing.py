import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_without_torch_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import coredata_torch\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'adapters' / 'torch'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (
        "coredata_torch needs PyTorch, which is not installed: pip install 'coredata[torch]'"
    )
