"""Runs the notebooks' scripts and writes them with their outputs: python .ci/notebooks.py

What a backend prints to standard error while it starts is left out.
"""

from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def main():
    for script in sorted(FOLDER.glob("*.py")):
        notebook = jupytext.read(script)
        NotebookClient(
            notebook,
            timeout=180,
            coalesce_streams=True,
            resources={"metadata": {"path": str(FOLDER)}},
        ).execute()
        for index, cell in enumerate(notebook.cells):
            cell.id = f"cell-{index}"  # drawn at random otherwise
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code":
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        nbformat.write(notebook, script.with_suffix(".ipynb"))
        print(f"{script.stem}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
