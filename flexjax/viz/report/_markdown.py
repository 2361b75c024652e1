"""Converts the Markdown of this project's README files to HTML.

Supported are headings, paragraphs, lists, tables and code. All text is escaped. Links keep only
their text, because a report is a single file.
"""

import html
import re


def to_html(text: str) -> str:
    """HTML of a text; headings are two levels lower, below those of the report."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n".join(part for block in _joined(blocks) for part in _block(block.split("\n")))


def _joined(blocks: list[str]) -> list[str]:
    """Join indented code that an empty line divides."""
    found: list[str] = []
    for block in blocks:
        if found and block.startswith("    ") and found[-1].startswith("    "):
            found[-1] += "\n\n" + block
        else:
            found.append(block)
    return found


def _block(lines: list[str]) -> list[str]:
    if not lines or not lines[0].strip():
        return []
    if match := re.match(r"(#+) (.*)", lines[0]):
        level = min(2 + len(match[1]), 6)
        return [f"<h{level}>{_inline(match[2])}</h{level}>", *_block(lines[1:])]
    if lines[0].startswith("    "):
        return [
            f"<pre>{html.escape(chr(10).join(line.removeprefix('    ') for line in lines))}</pre>"
        ]
    if lines[0].startswith("|"):
        return [_table([line for line in lines if line.startswith("|")])]
    if lines[0].startswith("- "):
        items = re.split(r"^- ", "\n".join(lines), flags=re.M)[1:]
        return ["<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"]
    later = next(
        (k for k, line in enumerate(lines) if k and line.startswith(("- ", "|", "#"))), len(lines)
    )
    return [f"<p>{_inline(chr(10).join(lines[:later]))}</p>", *_block(lines[later:])]


def _table(lines: list[str]) -> str:
    rows = [
        [_inline(cell.strip()) for cell in line.strip().strip("|").split("|")] for line in lines
    ]
    body = [row for row in rows[1:] if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    head = "".join(f"<th>{cell}</th>" for cell in rows[0])
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
        + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
        + "</tbody></table></div>"
    )


def _inline(text: str) -> str:
    """Replace code first, so that its content stays as it is."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        f"<code>{html.escape(p[1:-1])}</code>"
        if p.startswith("`") and len(p) > 2
        else _emphasis(html.escape(p))
        for p in parts
    )


def _emphasis(text: str) -> str:
    text = re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text)
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text, flags=re.S)
