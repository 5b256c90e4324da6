"""Small text files: what may never end is not opened, what is too large is not read."""

import os

import pytest

from repro.base.errors import ParamError
from repro.files.whole import read_small


def test_text_is_read_without_its_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffé".encode())
    assert read_small(path, 5, ParamError) == "é"
    with pytest.raises(ParamError, match=r"a\.txt: larger than 4 bytes"):
        read_small(path, 4, ParamError)


def test_what_is_no_text_file_is_one_line(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"a\nb\xff")
    for name, reason in (
        ("pipe", r"one: cannot be read \(it is no regular file\)"),
        ("", r"one: cannot be read \(it is a folder\)"),
        ("gone", r"one: cannot be read \(it does not exist\)"),
        ("x" * 300, r"one: cannot be read \(File name too long\)"),
        ("latin", "one:2: byte 3 is not UTF-8 text"),
    ):
        with pytest.raises(ParamError, match=reason):
            read_small(tmp_path / name, 100, ParamError, "one")
