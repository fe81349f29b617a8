"""The measures registered in `swsdist.registry.registries.MEASURES`."""
