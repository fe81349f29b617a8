"""The measures that `swsdist.registries.MEASURES` names: each says what it takes, its part tables, and its values."""
