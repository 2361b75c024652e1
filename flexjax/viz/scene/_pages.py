"""Renders HTML pages from templates, with escaped data and embedded files."""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parents[1] / "assets"


@cache
def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:
    """Render a template of the assets folder; values are escaped unless it marks them as safe."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset(template)).render(**values)


def embedded_json(data: Any) -> str:
    """JSON for a script element; a name such as ``</script>`` cannot end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def viewer_page(title: str, scene: str) -> str:
    """The 3D page of a scene, which is JSON for a script element."""
    return render("viewer.html", title=title, scene=scene, script=asset("viewer.min.js"))


def data_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
