"""`swsdist serve`: a page in the browser to search an archive by voice, judge what is found, and collect words."""
