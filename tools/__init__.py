"""What the house is kept with: pages made from the code, counts of it, a picture of the page, and the English corpus."""
