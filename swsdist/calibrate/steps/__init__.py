"""Steps of calibration; `swsdist.registry.registries` registers them."""
