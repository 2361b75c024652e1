"""Makes the notebooks: runs each text form (.py) as a notebook and stores it with outputs (.ipynb).

python notebooks/_make.py                 those whose source is newer than their outputs
python notebooks/_make.py --all           every notebook
python notebooks/_make.py first_robot     one
python notebooks/_make.py --check         lists those that are not current

Needs `pip install 'flexjax[notebooks]'`, and Chromium for the pictures of 3D pages. A notebook
stores the hash of the code that made its outputs; `tests/test_notebooks.py` compares it with the
text form. The figure of the cell with the tag "cover" is also written to images/, from where the
notebook's first cell, the site and its gallery show it. 3D pages are written to pages/.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BROWSER = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
FLAGS += ["--enable-unsafe-swiftshader", "--window-size=1000,560", "--virtual-time-budget=4000"]


def sources() -> list[Path]:
    return sorted(p for p in HERE.glob("*.py") if not p.name.startswith("_"))


def cells(path: Path) -> list[tuple[str, str]]:
    """(kind, text) of the cells of a notebook: of its text form, or of what is stored."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        stored = json.loads(text)["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in stored]
    parts = re.split(r"^# %%( \[markdown\])?[^\n]*\n", text, flags=re.M)[1:]
    found = []
    for kind, part in zip(parts[::2], parts[1::2], strict=True):
        lines = part.strip("\n").split("\n")
        if kind:
            lines = [re.sub(r"^# ?", "", line) for line in lines]
        found.append(("markdown" if kind else "code", "\n".join(lines)))
    return found


def digest(path: Path) -> str:
    """The hash of the code, on which outputs depend."""
    code = [text for kind, text in cells(path) if kind == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def faults(path: Path) -> list[str]:
    """What is wrong with the stored form of a text form; nothing if it is current."""
    stored = path.with_suffix(".ipynb")
    if not stored.exists():
        return [f"{stored.name}: missing; run python notebooks/_make.py {path.stem}"]
    book = json.loads(stored.read_text(encoding="utf-8"))
    made = book["metadata"].get("flexjax", {}).get("source")
    if cells(stored) != cells(path) or made != digest(path):
        return [f"{stored.name}: older than {path.name}; run python notebooks/_make.py {path.stem}"]
    return []


def only_text_changed(path: Path) -> bool:
    """Whether the outputs that are stored come from the code of the text form."""
    stored = path.with_suffix(".ipynb")
    if not stored.exists():
        return False
    made = json.loads(stored.read_text(encoding="utf-8"))["metadata"].get("flexjax", {})
    return made.get("source") == digest(path) == digest(stored)


def copy_text(path: Path) -> None:
    """Bring the text around the code up to date, without running the code."""
    import jupytext
    import nbformat

    stored = path.with_suffix(".ipynb")
    old, new = nbformat.read(stored, as_version=4), jupytext.read(path)
    code = iter([cell for cell in old.cells if cell["cell_type"] == "code"])
    for k, cell in enumerate(new.cells):
        cell["id"] = f"cell-{k}"
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = next(code)["outputs"], None
    new.metadata["flexjax"] = old.metadata["flexjax"]
    stored.write_text(nbformat.writes(new) + "\n", encoding="utf-8")
    print(f"{path.stem}: text only")


def small(png: str) -> str:
    """A PNG in base64 with at most 128 colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    plain = Image.new("RGB", picture.size, "white")
    plain.paste(picture, mask=picture.getchannel("A") if "A" in picture.getbands() else None)
    data = io.BytesIO()
    plain.quantize(128, dither=Image.Dither.NONE).save(data, format="PNG", optimize=True)
    return base64.b64encode(data.getvalue()).decode()


def page_outputs(page: str, name: str) -> list[dict]:
    """A 3D page as a picture and a link to the page, which is written to pages/."""
    import html

    target = HERE / "pages" / f"{name}.html"
    target.parent.mkdir(exist_ok=True)
    target.write_text(html.unescape(page), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSER)), None)
    if browser is None:
        sys.exit("expected chromium, which takes the picture of a 3D page: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        command = [browser, *FLAGS, f"--screenshot={shot}", target.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        picture = small(base64.b64encode(shot.read_bytes()).decode())
    text = f"[The 3D page](pages/{name}.html): drag to rotate it, move the slider of the time."
    return [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}},
        {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": text}},
    ]


def tidy(outputs: list, name: str, folder: str) -> list:
    """Outputs as they are stored: small pictures, 3D pages as links, last state of a progress bar,
    no paths of this machine."""
    found = []
    for output in outputs:
        if output["output_type"] == "stream":
            text = re.sub(r"\x1b\[[0-9;]*m", "", output["text"])
            text = "\n".join(line.rsplit("\r", 1)[-1] for line in text.split("\n"))
            output["text"] = text.replace(folder + "/", "")
            if output["name"] == "stderr":
                print(f"  stderr: {output['text'].strip()[:400]}")
                continue
        if page := re.search(
            r'<iframe srcdoc="(.*?)" style', output.get("data", {}).get("text/html", ""), re.S
        ):
            found += page_outputs(page[1], name)
            continue
        if "image/png" in output.get("data", {}):
            output["data"] = {"image/png": small(output["data"]["image/png"])}
            output["metadata"] = {}
        output.pop("execution_count", None)
        if output["output_type"] == "execute_result":
            output["output_type"] = "display_data"
        found.append(output)
    return found


def make(path: Path) -> None:
    """Run a text form as a notebook in an empty folder, and store it with its outputs."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    book = jupytext.read(path)
    environment = dict(os.environ)
    environment.pop("FLEXJAX_SHORT", None)
    environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    paths = [str(HERE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(book, timeout=1800, kernel_name="python3", resources=resources)
        client.execute(env=environment)
        seconds = time.perf_counter() - begin
        for k, cell in enumerate(book.cells):
            cell["id"] = f"cell-{k}"
            cell["metadata"].pop("execution", None)
            if cell["cell_type"] == "code":
                cell["execution_count"] = None
                cell["outputs"] = [
                    nbformat.from_dict(x) for x in tidy(cell["outputs"], path.stem, folder)
                ]
                if "cover" in cell["metadata"].get("tags", []):
                    shown = [x.get("data", {}).get("image/png") for x in cell["outputs"]]
                    png = next(filter(None, shown))
                    cover = HERE / "images" / f"{path.stem}.png"
                    cover.parent.mkdir(exist_ok=True)
                    cover.write_bytes(base64.b64decode(png))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    book.metadata["flexjax"] = {"source": digest(path)}
    stored = path.with_suffix(".ipynb")
    stored.write_text(nbformat.writes(book) + "\n", encoding="utf-8")
    size = stored.stat().st_size / 1e3
    print(f"{path.stem}: {seconds:.0f} s, {cpu:.0f} s of processor time, {size:.0f} kB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="names of notebooks")
    parser.add_argument("--all", action="store_true", help="also those that are current")
    parser.add_argument("--check", action="store_true", help="only list what is not current")
    args = parser.parse_args()
    chosen = [p for p in sources() if not args.names or p.stem in args.names]
    stale = [fault for path in chosen for fault in faults(path)]
    if args.check:
        sys.exit("\n".join(stale))
    for path in chosen:
        if not args.all and faults(path) and only_text_changed(path):
            copy_text(path)
        elif args.all or args.names or faults(path):
            make(path)


if __name__ == "__main__":
    main()
