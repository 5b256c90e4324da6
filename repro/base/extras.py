"""Extras: packages that a light install lacks, and the error for a missing one."""

import contextlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from repro.base.errors import ExtraMissingError
from repro.base.paths import PACKAGE

#: Name under which pip knows the package.
DISTRIBUTION = "repro-gpu-scheduling"
#: Extra of pyproject.toml -> its modules that the package imports.
MODULES = {
    "figures": (
        "matplotlib",
        "seaborn",
        "jinja2",
        "psutil",
        "papermill",
        "nbformat",
        "nbconvert",
        "jupyter_client",
        "ipykernel",
        "IPython",
    ),
    "search": ("pymoo",),
    "estimate": ("sklearn", "river", "threadpoolctl"),
    "dask": ("distributed",),
    "ecos": ("ecos",),
    "crate": ("rocrate",),
    "measure": ("torch", "PIL"),
}


def install_command(extra: str) -> str:
    """Command that adds an extra to the environment of this process.

    >>> install_command("search").endswith('[search]"')
    True
    """
    pip = f"{sys.executable} -m pip install"
    root = PACKAGE.parent
    if (root / "pyproject.toml").is_file() and (root / "params").is_dir():
        folder = "." if root == Path.cwd().resolve() else root
        return f'{pip} -e "{folder}[{extra}]"'
    return f'{pip} "{DISTRIBUTION}[{extra}]"'


def is_installed(module: str) -> bool:
    """Whether a module can be found; it is not imported, only the package around it.

    >>> is_installed("json.decoder"), is_installed("no_such_package.module")
    (True, False)
    """
    if sys.modules.get(module) is not None:
        return True
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # the package around the module is missing
        return False


def require(extra: str, purpose: str) -> None:
    """Check that all modules of an extra can be found, without importing them.

    Raises
    ------
    ExtraMissingError
        If a module is missing. The message has the purpose, the module and the install command.
    """
    for module in MODULES[extra]:
        if not is_installed(module):
            raise _missing(extra, module, purpose)


@contextlib.contextmanager
def needed_for(purpose: str, otherwise: str = "") -> Iterator[None]:
    """Turn the failed import of an extra into an error with the command that installs it.

    Other failed imports pass through. ``otherwise`` says what to do without the extra.

    >>> with needed_for("a matching"):
    ...     import rustworkx
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extras = [extra for extra, modules in MODULES.items() if module in modules]
        # an installed package that lacks a submodule is no missing extra
        if not extras or is_installed(module):
            raise
        raise _missing(extras[0], module, purpose, otherwise) from None


def _missing(extra: str, module: str, purpose: str, otherwise: str = "") -> ExtraMissingError:
    """Error for a missing module of an extra."""
    remedy = f"{otherwise}, or run" if otherwise else "run"
    return ExtraMissingError(
        f"{purpose} needs {module}, which is not installed; {remedy}: {install_command(extra)}",
        name=module,
    )
