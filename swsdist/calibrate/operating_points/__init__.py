"""One list at many operating points: swept, scored anew, and studied."""
