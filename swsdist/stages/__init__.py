"""Stages that chains share, and their inputs."""
