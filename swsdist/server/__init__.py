"""`swsdist serve`: a page in the browser to search an archive, judge hits, and collect words."""
