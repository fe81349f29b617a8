"""Steps of calibration, one per file; `swsdist.registry.registries` registers them."""
