"""Parts of a robot: links, joints, sections, payloads, sensors; their fields and faults."""
