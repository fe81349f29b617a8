"""How long a run takes, on machines that need not be there: told from the receipts of one that was done."""
