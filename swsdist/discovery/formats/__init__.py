"""Files of term discovery: one file a format. A reader gets a dictionary of documents, name to number, and adds to it."""
