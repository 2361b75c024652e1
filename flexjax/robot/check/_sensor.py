"""Rules for payloads and sensors: where they are attached and which fields their kind needs."""

from flexjax.robot.parts._choices import SENSOR_KINDS
from flexjax.robot.parts._fault import Faults, is_filtered, items, names_of, numbers, one_of

ON_JOINT = ("encoder", "motor_encoder", "torque")


def check_payload(faults: Faults, path: str, payload: dict, document: dict) -> None:
    links = names_of(document, "links")
    if isinstance(payload.get("link"), str) and payload["link"] not in links:
        faults.add(f"{path}.link", payload["link"], f"the name of a link ({one_of(links)})")


def check_sensor(faults: Faults, path: str, sensor: dict, document: dict) -> None:
    kind, on = sensor.get("kind"), sensor.get("on")
    if not isinstance(kind, str) or kind not in SENSOR_KINDS:
        if isinstance(kind, str):
            faults.add(f"{path}.kind", kind, f"one of {', '.join(SENSOR_KINDS)}")
        return
    what = "joint" if kind in ON_JOINT else "link"
    target = next((item for _, item in items(document, what + "s") if item.get("name") == on), None)
    if target is None:
        if isinstance(on, str):
            names = one_of(names_of(document, what + "s"))
            faults.add(
                f"{path}.on", on, f"the name of a {what} for a sensor of kind {kind} ({names})"
            )
        return
    if kind in ("encoder", "motor_encoder") and (
        target.get("type") == "fixed" or target.get("loop") is True
    ):
        faults.add(
            f"{path}.on", on, "a joint with a coordinate", "Fixed joints and loop joints have none."
        )
    if kind in ("strain_gauge", "flex") and target.get("rigid") is True:
        faults.add(f"{path}.on", on, "an elastic link", "A rigid link has no strain.")
    span = numbers(sensor.get("span"))
    if kind == "flex" and "span" not in sensor and not is_filtered(document):
        faults.add(
            f"{path}.span",
            None,
            "the stations between which a flex sensor measures",
            "For example span = [0.0, 1.0].",
        )
    if kind != "flex" and "span" in sensor:
        faults.add(
            f"{path}.span",
            sensor["span"],
            f"no span on a sensor of kind {kind}",
            "Use s for its station.",
        )
    if span is not None and len(span) == 2 and span[0] >= span[1]:
        faults.add(f"{path}.span", span, "two stations in increasing order", "Swap the two.")
    _check_crosstalk(faults, path, sensor, document)
    direction = numbers(sensor.get("direction"))
    if direction is not None and not any(direction):
        faults.add(
            f"{path}.direction", direction, "a vector other than zero", "For example [0, 1, 0]."
        )


def _check_crosstalk(faults: Faults, path: str, sensor: dict, document: dict) -> None:
    others = [name for name in names_of(document, "sensors") if name != sensor.get("name")]
    parts = sensor.get("crosstalk")
    for i, part in enumerate(parts if isinstance(parts, list) else []):
        name = part.get("sensor") if isinstance(part, dict) else None
        if isinstance(name, str) and name not in others:
            where = f"{path}.crosstalk[{i}].sensor"
            faults.add(where, name, f"the name of another sensor ({one_of(others)})")
