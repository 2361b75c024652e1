"""Units of sensor readings and joint efforts."""

from flexjax._types import is_traced
from flexjax.robot._robot import Robot
from flexjax.robot.parts._joint import Joint, Sensor


def sensor_unit(sensor: Sensor, robot: Robot) -> str:
    """The unit of a sensor's reading; "reading" if its gain is traced or differs from one."""
    if is_traced(sensor.gain) or sensor.gain.ndim or float(sensor.gain) != 1.0:
        return "reading"
    if sensor.kind in ("encoder", "motor_encoder", "torque"):
        joint = robot.joints[robot.joint_index(sensor.on)]
        return effort_unit(joint) if sensor.kind == "torque" else "m" if _slides(joint) else "rad"
    return {"tip": "m", "strain_gauge": "1", "flex": "rad", "accelerometer": "m/s2"}[sensor.kind]


def effort_unit(joint: Joint) -> str:
    return "N" if _slides(joint) else "N m"


def _slides(joint: Joint) -> bool:
    return joint.type in ("sliding", "prismatic", "free")
