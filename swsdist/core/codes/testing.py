"""Codes of what tests and synthetic corpora need."""

from __future__ import annotations
