"""The registry: filled by decorators, answers unknown names with near matches."""

from __future__ import annotations

import importlib
import sys

import pytest

from repro.base.errors import BrokenFileWarning, ParamError, PolicyError
from repro.model.registry import Registry


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules that register themselves, and one that does not."""
    folder = tmp_path / "zoo_for_tests"
    folder.mkdir()
    (folder / "__init__.py").write_text("from zoo_for_tests.cage import animals\n")
    (folder / "cage.py").write_text(
        "from repro.model.registry import Registry\n"
        "animals = Registry('animal', 'zoo_for_tests', group='zoo.animals')\n"
    )
    (folder / "lion.py").write_text(
        "from zoo_for_tests.cage import animals\n@animals.register('lion')\nclass Lion:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "zoo_for_tests"
    for name in [name for name in sys.modules if name.startswith("zoo_for_tests")]:
        del sys.modules[name]


def test_modules_are_imported_on_the_first_look(package):
    animals = importlib.import_module("zoo_for_tests.cage").animals
    assert "zoo_for_tests.lion" not in sys.modules
    assert list(animals) == ["lion"]
    assert "zoo_for_tests.lion" in sys.modules
    assert animals["lion"].__name__ == "Lion"
    assert "lion" in animals
    assert "tiger" not in animals


def test_a_name_imports_the_module_that_registers_it_alone(package, tmp_path):
    text = "from zoo_for_tests.cage import animals\n@animals.register('owl')\nclass Owl: pass\n"
    (tmp_path / package / "owl.py").write_text(text)
    animals = importlib.import_module("zoo_for_tests.cage").animals
    assert animals["owl"].__name__ == "Owl"
    assert "zoo_for_tests.lion" not in sys.modules
    assert list(animals) == ["lion", "owl"]


def filled(**items):
    registry = Registry("shape")
    for name, item in items.items():
        registry.register(name)(item)
    return registry


def test_an_unknown_name_gets_near_matches_and_the_whole_list():
    shapes = filled(square=int, circle=float, ellipse=str)
    with pytest.raises(ParamError) as caught:
        shapes["sqare"]
    assert str(caught.value) == (
        "unknown shape 'sqare'; did you mean 'square'? (known: circle, ellipse, square)"
    )


def test_nothing_near_gives_the_list_alone():
    with pytest.raises(ParamError, match=r"^unknown shape 'xyz' \(known: square\)$"):
        filled(square=int)["xyz"]


def test_several_near_matches():
    with pytest.raises(ParamError, match=r"did you mean 'las-.d' or 'las-.d'"):
        filled(**{"las-2d": int, "las-3d": float})["las-d"]


def test_a_name_belongs_to_one_thing():
    shapes = filled(square=int)
    with pytest.raises(ParamError, match="shape 'square' is registered twice"):
        shapes.register("square")(float)


def test_the_same_thing_may_be_registered_again():
    """As when a notebook runs a cell twice."""
    shapes = filled(square=int)
    shapes.register("square")(int)
    assert shapes["square"] is int


def test_names_are_sorted():
    assert list(filled(b=int, a=float, c=str)) == ["a", "b", "c"]


def test_the_error_is_of_the_family_asked_for():
    with pytest.raises(PolicyError):
        Registry("policy", error=PolicyError)["x"]


BROKEN = {
    "tiger.py": (
        "from zoo_for_tests.cage import animals\n@animals.register('tiger')\n"
        "class Tiger:\n    pass\nnme\n",
        "zoo_for_tests/tiger.py:5: NameError: name 'nme' is not defined",
    ),
    "bear.py": ("@animals.register('bear')\nclass Bear(:\n", "bear.py:2: SyntaxError: "),
    "wolf.py": (
        "from zoo_for_tests import fur\n@register('wolf')\nclass Wolf: pass\n",
        "wolf.py:1: ImportError: cannot import name 'fur'",
    ),
    "fox.py": ("import sys\n@register('fox')\ndef f(): pass\n", "fox.py:2: NameError"),
    "ant.py": (
        "import sys; sys.exit('no ants')  # register('ant')\n",
        "ant.py:1: SystemExit: no ants",
    ),
}


@pytest.mark.parametrize("file", BROKEN)
def test_a_broken_file_is_named_and_the_others_go_on(package, tmp_path, file):
    text, line = BROKEN[file]
    (tmp_path / package / file).write_text(text)
    animals = importlib.import_module("zoo_for_tests.cage").animals
    name = file.removesuffix(".py")
    with pytest.warns(BrokenFileWarning) as told:
        assert list(animals) == ["lion"]
    (message,) = [str(one.message) for one in told]
    assert line in message and message.endswith(f"; animal {name} left out")
    assert animals["lion"] and name not in animals
    with pytest.raises(ParamError) as caught:
        animals[name]
    assert str(caught.value).startswith(f"animal {name!r} cannot be read: zoo_for_tests/{file}:")


def test_a_broken_file_that_others_import_is_named_once(package, tmp_path):
    (tmp_path / package / "_paws.py").write_text("\n1 / 0\n")
    for name in ("cat", "dog"):
        text = f"import zoo_for_tests._paws\n@animals.register('{name}')\nclass X: pass\n"
        (tmp_path / package / f"{name}.py").write_text(text)
    animals = importlib.import_module("zoo_for_tests.cage").animals
    with pytest.warns(BrokenFileWarning) as told:
        assert list(animals) == ["lion"]
    assert [str(one.message) for one in told] == [
        "zoo_for_tests/_paws.py:2: ZeroDivisionError: division by zero; animal cat, dog left out"
    ]


def install(folder, name, text, value=None):
    """Put a one-file package with an entry point into a folder of ``sys.path``."""
    (folder / f"{name}_for_zoo.py").write_text(text)
    info = folder / f"{name}_for_zoo-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-for-zoo\nVersion: 0.1\n")
    point = f"[zoo.animals]\n{name} = {value or f'{name}_for_zoo'}\n"
    (info / "entry_points.txt").write_text(point)


@pytest.fixture
def animals(package, tmp_path):
    yield importlib.import_module("zoo_for_tests.cage").animals
    for name in [name for name in sys.modules if name.endswith("_for_zoo")]:
        del sys.modules[name]


ANIMAL = "from zoo_for_tests.cage import animals\n@animals.register('{}')\nclass X: pass\n"


def test_an_installed_package_adds_a_name(animals, tmp_path):
    install(tmp_path, "seal", ANIMAL.format("seal"))
    assert list(animals) == ["lion", "seal"]


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("\nnme\n", None, "seal_for_zoo.py:2: NameError: name 'nme' is not defined"),
        ("class X(:", None, "seal_for_zoo.py:1: SyntaxError: invalid syntax"),
        ("", "see_for_zoo", "see_for_zoo.py:1: ModuleNotFoundError: No module named 'see_for_zoo'"),
        ("", None, "seal_for_zoo registers no 'seal'"),
        (
            ANIMAL.format("lion").replace("X", "Y"),
            None,
            "seal_for_zoo.py:2: ParamError: animal 'lion' is registered twice: "
            "{0}/zoo_for_tests/lion.py:2 and {0}/seal_for_zoo.py:2; rename one of them",
        ),
    ],
)
def test_a_broken_installed_package_is_named_and_the_rest_goes_on(
    animals, tmp_path, text, value, message
):
    install(tmp_path, "seal", text, value)
    with pytest.warns(BrokenFileWarning) as told:
        assert list(animals) == ["lion"]
    (line,) = [str(one.message) for one in told]
    message = message.format(tmp_path.resolve())
    assert line == f"seal-for-zoo 0.1: {message}; animal seal left out"
    assert animals["lion"].__name__ == "Lion"
    with pytest.raises(ParamError, match=r"animal .seal. cannot be read: seal-for-zoo 0\.1: "):
        animals["seal"]


def test_a_name_of_the_package_is_taken_before_anybody_used_it(package):
    animals = importlib.import_module("zoo_for_tests.cage").animals
    with pytest.raises(ParamError, match="animal 'lion' is registered twice"):

        @animals.register("lion")
        class Lion:
            pass

    assert list(animals) == ["lion"]
    assert animals["lion"].__module__.startswith("zoo_for_tests.")


def test_an_equal_class_name_does_not_replace_what_the_package_has(package):
    animals = importlib.import_module("zoo_for_tests.cage").animals
    with pytest.raises(ParamError, match="animal 'lion' is registered twice"):
        animals.register("lion")(type("Lion", (), {}))
    assert animals["lion"].__module__.startswith("zoo_for_tests.")


SQUARE = "@shapes.register('square')\nclass Square: pass\n"


@pytest.fixture
def run_file(tmp_path):
    """Function that runs the text of a file, which registers shapes as the program's own file."""
    shapes = filled()

    def run(name, text):
        path = tmp_path / name
        path.write_text(text)
        exec(compile(text, str(path), "exec"), {"__name__": "__main__", "shapes": shapes})
        return shapes

    return run


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        (("a.py", SQUARE), ("b.py", f"\n{SQUARE}"), ("a.py:1", "b.py:2")),
        (("a.py", ""), ("a.py", SQUARE * 2), ("a.py:1", "a.py:3")),
    ],
    ids=["two files", "one file"],
)
def test_two_definitions_of_one_class_name_clash(run_file, tmp_path, first, second, places):
    run_file(*first)
    one, other = (tmp_path.resolve() / place for place in places)
    with pytest.raises(ParamError) as caught:
        run_file(*second)
    assert str(caught.value) == (
        f"shape 'square' is registered twice: {one} and {other}; rename one of them"
    )


@pytest.mark.parametrize(
    "text",
    [
        SQUARE,
        f"\n{SQUARE}",
        SQUARE.replace("pass", "sides = 4"),
        f'"""Another shapes.register("square")."""\n{SQUARE}',
    ],
)
def test_a_file_that_runs_again_replaces_its_definition(run_file, text):
    first = run_file("a.py", SQUARE)["square"]
    assert run_file("a.py", text)["square"] is not first


def test_a_cell_that_runs_again_replaces_its_definition(run_file, monkeypatch):
    """A debugger keeps the cells of a notebook in files, one for each text."""
    monkeypatch.setattr("repro.model.registry.shell", object)
    first = run_file("1.py", SQUARE)["square"]
    assert run_file("2.py", f"\n{SQUARE}")["square"] is not first
