"""`swsdist serve`: a page in the browser to search an archive by text or voice, judge what is found, and collect words."""
