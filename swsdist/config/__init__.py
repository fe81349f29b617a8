"""Configs: their model, reading, writing and reference page."""

from swsdist.config.loader import config_from_dict, load_config, load_corpus
from swsdist.config.model import Config
from swsdist.config.template import dump_config, without_secrets

__all__ = ["Config", "config_from_dict", "dump_config", "load_config", "load_corpus", "without_secrets"]
