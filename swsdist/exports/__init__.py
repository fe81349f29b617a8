"""Files of detections for other programs: lists, labels, tiers, clips."""
