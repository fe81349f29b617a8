"""One list at many operating points: rescoring, fitted thresholds, and the study of KST and STO."""
