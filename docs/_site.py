"""Builds the site: the pages of docs/, and the notebooks with their outputs as tutorials.

python docs/_site.py [folder]    by default out/docs

Pages link to notebooks as files of the repository (`../notebooks/first_robot.ipynb`); here such
links lead to the tutorials. A broken link, a missing page and a missing anchor are errors.
"""

import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


def tutorial(notebook: Path, pictures: Path) -> str:
    """A notebook as Markdown; the pictures of its outputs are written to a folder."""
    name, parts, count = notebook.stem, [], 0
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text.replace(".ipynb", ".md").replace("](../docs/", "](../"))
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                count += 1
                picture = pictures / f"{name}-{count}.png"
                picture.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![Output of the cell above](images/{picture.name})")
            elif "text/markdown" in data:
                parts.append("".join(data["text/markdown"]))
            else:
                shown = "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n")
                parts.append(f"```{{ .text .output }}\n{shown}\n```")
    source = f"[Download the notebook]({name}.ipynb), or its text form, [{name}.py]({name}.py)."
    return "\n\n".join([*parts, "---", source, ""])


def collect(folder: Path) -> None:
    """The sources of the site: docs/ with the tutorials, mkdocs.yml, and the package."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "flexjax").symlink_to(ROOT / "flexjax", target_is_directory=True)
    for page in (folder / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        linked = re.sub(r"\.\./notebooks/([\w/-]+)\.ipynb", r"tutorials/\1.md", text)
        page.write_text(linked.replace("../notebooks/", "tutorials/"), encoding="utf-8")
    tutorials = folder / "docs" / "tutorials"
    for part in ("images", "pages"):
        shutil.copytree(NOTEBOOKS / part, tutorials / part)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        shutil.copy(notebook, tutorials)
        shutil.copy(notebook.with_suffix(".py"), tutorials)
        page = tutorials / f"{notebook.stem}.md"
        page.write_text(tutorial(notebook, tutorials / "images"), encoding="utf-8")


def build(target: Path) -> str:
    """Build the site in a folder; returns what zensical reports, and raises if it refuses."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        collect(folder)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stdout + done.stderr)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "out" / "docs", target)
    return done.stdout


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "docs"
    try:
        build(target)
    except ValueError as error:
        sys.exit(str(error))
    print(f"open {target / 'index.html'}")
