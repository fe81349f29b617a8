"""What the house is kept with: pages made from the code, and counts of it."""
