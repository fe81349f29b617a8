"""Forecasts of a run's duration and price on other machines, from the receipts of a finished run."""
