"""Inspecting a run folder: digests, status, estimates, rejections; and checks of the machine."""
