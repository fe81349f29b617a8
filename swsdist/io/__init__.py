"""Storage and foreign formats, one file per format."""
