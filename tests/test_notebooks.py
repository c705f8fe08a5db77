"""Notebooks: the script and the `.ipynb` say the same, and every cell runs."""

import os

import harness
import jupytext
import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))


def cells(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_there_are_notebooks():
    assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebook_is_its_script_with_outputs(script):
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert cells(notebook) == cells(jupytext.read(script)), (
        "run: jupytext --to ipynb --execute notebooks/*.py"
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert [output for cell in code for output in cell.outputs]
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", output


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebook_runs(script, tmp_path):
    if harness.BACKEND != "tensorflow":
        pytest.skip("notebooks are run on the default backend")
    notebook = jupytext.read(script)
    # A kernel inherits the environment, not this process's import path.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    client = NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
