"""Clusters with one fault each: short specs, YAML files and lists of nodes."""

from __future__ import annotations

import gzip
import json
import pickle

import pytest
from doors import NO_FILES, Case, check, parameters, refused

ANSI = "\x1b[31mred"
#: Short specs that are none: fault -> text.
NO_SPECS = {
    "empty": "",
    "blank": " ",
    "word": "many",
    "one number": "8",
    "no GPUs": "8x",
    "no nodes": "x8",
    "zero nodes": "0x8",
    "zero GPUs": "8x0",
    "zero switches": "0x8x8",
    "negative": "-1x8",
    "fraction": "1.5x8",
    "four numbers": "1x2x3x4",
    "type missing": "8x8:",
    "type twice": "8x8:v100:k80",
    "type with a blank": "8x8:v 1/00",
    "type a number": "8x8:100",
    "type of a typed set": "8xv100:k80",
    "comma first": ",8x8",
    "comma last": "8x8,",
    "two commas": "8x8,,8x8",
    "semicolon": "8x8;8x8",
    "multiplication": "8*8",
    "comma alone": ",",
    "exponent": "1e3x8",
    "hexadecimal": "0x10x8:",
    "infinite": "infx8",
    "not a number": "nanx8",
    "full-width digits": "８x８",
    "Arabic digits": "٨x٨",
    "Cyrillic letter": "8х8",
    "superscript digits": "8²x8",
    "too many nodes": "100000000x1",
    "too many GPUs": "1x100000000",
    "too many switches": "100000x100000x1",
    "number of 5,000 digits": f"{'9' * 5000}x8",
    "type of 101 characters": f"8x8:{'v' * 101}",
    "100,000 sets": ",".join(["80xx"] * 10**5),
    "types that differ in case": "8x8:v100,8x8:V100",
    "terminal escape": f"8x8:{ANSI}",
    "reversed text": "8x8:a\u202eb",
    "zero width": "8\u200bx8",
    "formula": "=8x8",
    "list": "[8, 8]",
    "mapping": "{nodes: 8}",
    "path without a file": "none.yaml",
    "path out of the folder": "../../../../../etc/passwd",
    "path of a device": "/dev/zero",
    "path of the system": "/proc/self/mem",
    "home of nobody": "~nobody-at-all/c.yaml",
    "name of 200 characters": f"{'c' * 200}.yaml",
    "other ending": "nodes/c.toml",
    "address": "https://example.org/c.yaml",
    "shell": "$(id)",
    "SQL": "8x8'; drop table nodes",
}
YAML_KEYS = (
    *("count", "gpus", "type", "switch", "domain", "used"),
    *("gpu_mem_mb", "bandwidth_mb_s", "cpus", "memory_mib"),
)
#: Values of a key of a node, as YAML writes them.
NO_COUNT = {
    "negative": "-1",
    "fraction": "1.5",
    "exponent fraction": "1e-3",
    "number as text": '"4"',
    "word": "many",
    "true": "true",
    "infinite": ".inf",
    "not a number": ".nan",
    "huge": "1" + "0" * 30,
    "5,000 digits": "9" * 5000,
    "beyond a float": "1e999",
    "leading zero": "010",
    "list": "[4]",
    "mapping": "{a: 4}",
    "tag": "!!python/object:os.system 4",
    "own tag": "!gpu 4",
    "unknown alias": "*four",
    "date": "2020-01-01",
    "binary": "!!binary aGVsbG8=",
    "terminal escape": '"\\e[31m"',
}
NO_TYPE = {
    "number": "100",
    "true": "true",
    "empty": '""',
    "blank": '" "',
    "blank before": '" v100"',
    "61 characters": "v" * 61,
    "terminal escape": '"\\e[31mv100"',
    "reversed text": '"a\\u202eb"',
    "NUL": '"a\\0b"',
    "line end": '"a\\nb"',
    "list": "[v100]",
    "mapping": "{a: b}",
    "tag": "!!python/name:os.system v100",
    "no such character": '"\\UFFFFFFFF"',
    "lone surrogate": '"\\ud800"',
}
LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    + ["nodes: *a9", ""]
)
NO_YAML = {
    "no nodes": "nodes: []",
    "nodes null": "nodes:",
    "nodes a number": "nodes: 4",
    "nodes a mapping": "nodes: {gpus: 4}",
    "node a number": "nodes: [4]",
    "node null": "nodes: [~]",
    "node without GPUs": "nodes: [{count: 4}]",
    "all GPUs used": "nodes: [{gpus: 4, used: 4}]",
    "more used than there are": "nodes: [{gpus: 4, used: 5}]",
    "unknown key": "nodes: [{gpus: 4, gpu: 4}]",
    "key in capitals": "nodes: [{GPUS: 4}]",
    "Cyrillic key": "nodes: [{gрus: 4}]",
    "unknown key at the top": "nodes: [{gpus: 4}]\nnode: 3",
    "other key at the top": "node: [{gpus: 4}]",
    "key twice": "nodes: [{gpus: 4, gpus: 8}]",
    "nodes twice": "nodes: [{gpus: 4}]\nnodes: [{gpus: 8}]",
    "a list": "- gpus: 4",
    "a word": "nodes",
    "a number": "4",
    "comment only": "# nothing",
    "two documents": "nodes: [{gpus: 4}]\n---\nnodes: [{gpus: 4}]",
    "open bracket": "nodes: [{gpus: 4}",
    "tab": "nodes:\n\t- gpus: 4",
    "billion laughs": LAUGHS,
    "alias of itself": "nodes: &a [*a]",
    "merge of itself": "nodes:\n- &a\n  <<: *a\n  gpus: 4",
    "merge of a number": "nodes: [{<<: 4, gpus: 4}]",
    "100 levels": f"nodes: {'[' * 100}{']' * 100}",
    "100,000 levels": "nodes: " + "[" * 10**5,
    "200,000 nodes": f"nodes: [{'{gpus: 1},' * 200_000}]",
    "key a list": "nodes: [{[a]: 4}]",
    "Python object": "!!python/object/apply:os.system ['touch harmed']",
    "NUL": "nodes: [{gpus: 4}]\0",
    "control character": "nodes: [{gpus: 4}] # \x01",
    "million nodes of a million GPUs": "nodes: [{count: 1000000, gpus: 1000000}]",
    "anchor of 1 MB": "nodes: [{gpus: &" + "a" * (1 << 20) + " 4}]",
}
#: Lists of nodes: name -> (header, good row, {column: faults}).
NO_WHOLE = {
    "negative": "-1",
    "fraction": "1.5",
    "word": "two",
    "infinite": "inf",
    "not a number": "nan",
    "hexadecimal": "0x10",
    "underscore": "1_0",
    "Arabic digits": "٣",
    "full-width digits": "８",
    "huge": "9" * 30,
    "5,000 digits": "9" * 5000,
    "formula": "=1+1",
    "terminal escape": "\x1b[31m1",
    "zero width": "1\u200b",
    "exponent": "1e3",
}
NO_NAME = {
    "terminal escape": ANSI,
    "reversed text": "a\u202eb",
    "61 characters": "v" * 61,
    "zero width": "a\u200bb",
    "bell": "a\x07",
}
TABLES = {
    "tiresias": (
        "num_switch,num_node_p_switch,num_gpu_p_node",
        "1,4,8",
        {
            **dict.fromkeys(
                ["num_switch", "num_node_p_switch", "num_gpu_p_node"],
                NO_WHOLE | {"zero": "0", "empty": ""},
            ),
        },
    ),
    "openb": (
        "sn,gpu,model,cpu_milli,memory_mib",
        "n1,8,v100,64000,262144",
        {
            "gpu": NO_WHOLE | {"empty": ""},
            "model": NO_NAME,
            "cpu_milli": NO_WHOLE | {"zero": "0"},
            "memory_mib": NO_WHOLE | {"zero": "0"},
        },
    ),
    "philly": (
        "machineId,number of GPUs,single GPU mem",
        "m1,8,24GB",
        {
            "number of GPUs": NO_WHOLE | {"empty": ""},
            "single GPU mem": NO_WHOLE | {"zero": "0GB", "no unit": "24", "MB": "24MB"},
        },
    ),
    "pai": (
        "machine,gpu_type,cap_cpu,cap_mem,cap_gpu",
        "m1,V100,96,512,8",
        {
            "gpu_type": NO_NAME | {"machine without a GPU": "CPU"},
            "cap_cpu": {name: v for name, v in NO_WHOLE.items() if name != "fraction"},
            "cap_mem": {name: v for name, v in NO_WHOLE.items() if name != "fraction"},
            "cap_gpu": NO_WHOLE | {"empty": ""},
        },
    ),
}


def show(spec):
    return ("cluster", "show", "--", spec)


def yaml_cases():
    for key in YAML_KEYS:
        faults = NO_TYPE if key == "type" else NO_COUNT
        if key in ("count", "gpus", "gpu_mem_mb", "bandwidth_mb_s", "cpus", "memory_mib"):
            faults = faults | {"zero": "0", "null": "~"}
        for fault, value in faults.items():
            entry = {"gpus": "8", key: value}
            inner = ", ".join(f"{name}: {text}" for name, text in entry.items())
            content = f"nodes:\n- {{gpus: 2}}\n- {{{inner}}}\n"
            yield refused(
                f"YAML, {key}: {fault}", show("c.yaml"), "c.yaml:3:", **{"c.yaml": content}
            )
    for fault, content in NO_YAML.items():
        yield refused(f"YAML: {fault}", show("c.yaml"), "c.yaml:", **{"c.yaml": content})


def table_cases():
    for name, (header, good, columns) in TABLES.items():
        names = header.split(",")
        path = "c.csv"
        other = good.replace("n1", "n2").replace("m1", "m2")
        for column, faults in columns.items():
            position = names.index(column)
            for fault, value in faults.items():
                cells = other.split(",")
                cells[position] = value
                content = "\n".join([header, good, ",".join(cells), ""])
                yield refused(
                    f"{name}, {column}: {fault}", show(path), "c.csv:3", column, **{path: content}
                )
        damaged = {
            "one field more": f"{header}\n{good},9\n",
            "one field less": f"{header}\n{good.rpartition(',')[0]}\n",
            "open quote": f'{header}\n"{good}\n',
            "column twice": f"{header},{names[0]}\n{good},1\n",
            "unknown column": f"{header},rack\n{good},1\n",
            "header in capitals": f"{header.swapcase()}\n{good}\n",
            "column with a terminal escape": f"{header},{ANSI}\n{good},1\n",
            "semicolons": f"{header}\n{good}\n".replace(",", ";"),
            "header only": f"{header}\n",
            "NUL": f"{header}\n{good}\n\0",
            "Cyrillic letter": f"{header.replace('e', 'е').replace('p', 'р')}\n{good}\n",
        }
        if name != "tiresias":
            damaged["node twice"] = f"{header}\n{good}\n{good}\n"
        for fault, content in damaged.items():
            yield refused(f"{name}: {fault}", show(path), "c.csv", **{path: content})


def file_cases():
    for path, good in (("c.yaml", "nodes: [{gpus: 4}]\n"), ("c.csv", "sn,gpu,model\nn1,8,v100\n")):
        packed = gzip.compress(good.encode(), mtime=0)
        contents = {
            "empty": b"",
            "blanks": b" \n \n",
            "UTF-16": good.encode("utf-16"),
            "Latin-1 byte": good.encode() + b"\xe9",
            "overlong UTF-8": good.encode() + b"\xc0\xaf",
            "gzip": packed,
            "truncated gzip": packed[:-9],
            "pickle": pickle.dumps([1]),
            "PNG": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
            "JSON of nothing": json.dumps({}).encode(),
            "HTML page": b"<!DOCTYPE html><html>404</html>",
            "a million columns": b"x," * 10**6,
            "too large": b"#" * (65 << 20),
        }
        for fault, content in {**contents, **NO_FILES}.items():
            yield refused(f"{path}: {fault}", show(path), path, **{path: content})


def accepted_cases():
    for path, good in (("c.yaml", "nodes: [{gpus: 4}]\n"), ("c.csv", "sn,gpu,model\nn1,4,\n")):
        strange = {
            "plain": good.encode(),
            "byte-order mark": b"\xef\xbb\xbf" + good.encode(),
            "line ends of Windows": good.replace("\n", "\r\n").encode(),
            "no last line end": good.rstrip().encode(),
        }
        for name, content in strange.items():
            call = ("cluster", "show", path, "--json")
            yield Case(f"{path}, accepted: {name}", call, ('"gpus": 4',), {path: content}, code=0)
    for name, spec in {"blanks": " 2x2 ", "sign of times": "2×2", "capital": "2X2"}.items():
        call = ("cluster", "show", spec, "--json")
        yield Case(f"spec, accepted: {name}", call, ('"gpus": 4',), code=0)


CASES = [
    *(refused(f"spec: {fault}", show(spec)) for fault, spec in NO_SPECS.items()),
    *yaml_cases(),
    *table_cases(),
    *file_cases(),
    *accepted_cases(),
]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_cluster(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)
