"""The forms that detections are written in for others, a file each: see `swsdist.registry.registries.EXPORTS`."""
