import fsspec
import pytest

from coredata.storage import open_binary, open_text_stream, read_bytes

CONTENT = "first\r\nsecond\u2028still second\nlast".encode()


@pytest.fixture(params=["local", "file", "memory"])
def path(request, tmp_path):
    if request.param == "memory":
        fsspec.filesystem("memory").pipe("/files/x.txt", CONTENT)
        return "memory://files/x.txt"
    (tmp_path / "x.txt").write_bytes(CONTENT)
    return str(tmp_path / "x.txt") if request.param == "local" else f"file://{tmp_path}/x.txt"


def test_whole_file(path):
    assert read_bytes(path) == CONTENT


def test_binary_stream(path):
    with open_binary(path) as file:
        assert file.read(3) == b"fir"
        assert file.read() == CONTENT[3:]


def test_text_lines_end_only_at_newlines(path):
    with open_text_stream(path) as file:
        assert list(file) == ["first\r\n", "second\u2028still second\n", "last"]


@pytest.mark.parametrize("opener", [read_bytes, open_binary, open_text_stream])
@pytest.mark.parametrize("where", ["/nowhere/x", "memory://nowhere/x"])
def test_missing_files(opener, where):
    with pytest.raises(FileNotFoundError):
        opener(where)


def test_a_scheme_that_nobody_knows():
    with pytest.raises(ValueError, match="nosuch"):
        read_bytes("nosuch://bucket/x")
