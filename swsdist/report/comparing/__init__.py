"""Reports of comparisons of systems: tables of text, a page, and formats for programs."""
