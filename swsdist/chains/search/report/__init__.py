"""What the search chain shows at its end."""
