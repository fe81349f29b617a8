"""Steps of calibration, a file each; which there are, and what a config knows of them, stands in
`swsdist.registry.registries`."""
