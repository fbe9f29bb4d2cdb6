import pytest

from coredata.storage import open_binary
from coredata.storage.options import ReadOptions, file_system_options, read_options


def test_defaults_where_nothing_is_said():
    assert read_options(None) == read_options({"anon": True}) == ReadOptions()


def test_as_an_object_or_as_a_mapping():
    options = ReadOptions(memory=1 << 24, gap=5)
    assert read_options({"coredata": options}) is options
    assert read_options({"coredata": {"memory": 1 << 24, "gap": 5}}) == options


def test_the_file_system_does_not_see_them():
    options = {"skip_instance_cache": True, "coredata": {"gap": 5}}
    assert file_system_options(options) == {"skip_instance_cache": True}
    with pytest.raises(FileNotFoundError):
        open_binary("memory://options/missing", options)


def test_processes_share_the_memory():
    assert ReadOptions(memory=4 << 20, processes=4).share == 1 << 20


def test_a_disk_means_whole_blocks():
    assert ReadOptions().unit == 1
    assert ReadOptions(disk="/cache", block=4096).unit == 4096


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory": 0}, "memory: got 0, need a whole number of at least 1"),
        ({"gap": -1}, "gap: got -1, need a whole number of at least 0"),
        ({"timeout": 0}, "timeout: got 0, need a number of at least 0.001"),
        ({"deadline": -1}, "deadline: got -1, need a number of at least 0"),
        ({"requests": True}, "requests: got True, need a whole number"),
        (
            {"memory": 3, "processes": 1},
            r"memory: 3 bytes for 1 processes are 3.*give memory=1048576 ",
        ),
        (
            {"memory": 1 << 20, "processes": 2, "disk": "/x"},
            r"524288 for each, and 2097152 are needed; give memory=4194304 or more",
        ),
    ],
)
def test_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        ReadOptions(**fields)


def test_a_name_that_is_none():
    with pytest.raises(ValueError, match="has 'memori'; it may have memory, processes"):
        read_options({"coredata": {"memori": 5}})


def test_a_value_that_is_no_mapping():
    with pytest.raises(TypeError, match="got 5, need ReadOptions or a mapping"):
        read_options({"coredata": 5})
