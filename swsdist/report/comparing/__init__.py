"""What a comparison of systems shows: tables of text, a page, and the forms that other programs read."""
