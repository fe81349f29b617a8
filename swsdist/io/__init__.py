"""Storage and foreign formats, one file a format."""
