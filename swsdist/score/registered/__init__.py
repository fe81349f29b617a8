"""The measures that `swsdist.registry.registries.MEASURES` names: each says what it takes, its part tables, and its values."""
