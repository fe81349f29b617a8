"""What is counted and computed from trials."""
