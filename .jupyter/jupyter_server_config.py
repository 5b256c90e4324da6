"""What `make lab` adds to the settings of JupyterLab."""

import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_IN_TURN = ThreadPoolExecutor(max_workers=1)


def _note_unchanged(notebook: Path) -> None:
    """Tell git that a notebook saved with new outputs is unchanged; its edits stay unstaged.

    Git takes any file of another size for changed until it is added again.
    """
    git = ["git", "-C", str(notebook.parent)]
    unchanged = subprocess.run([*git, "diff", "--quiet", "--", notebook.name], capture_output=True)
    if unchanged.returncode == 0:
        subprocess.run([*git, "add", "-u", "--", notebook.name], capture_output=True)


def after_save(model, os_path, contents_manager, **_):
    """Hand a saved notebook to git without keeping the page waiting."""
    if model["type"] == "notebook":
        _IN_TURN.submit(_note_unchanged, Path(os_path))


# Jupyter reads its settings twice, and would call the second reading an override.
warnings.filterwarnings("ignore", "Overriding existing post_save_hook", UserWarning)
c = get_config()  # noqa: F821  (given by Jupyter)
c.FileContentsManager.post_save_hook = after_save
