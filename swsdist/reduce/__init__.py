"""Reducing turns candidates into detections: it removes overlaps, keeps the best, and gathers statistics."""
