"""Stages that chains share, and what they are given before the first."""
