"""What a run is told: the model (model.py), how it is read (loader.py), and how it is explained (template.py)."""

from swsdist.config.loader import config_from_dict, dump_config, load_config, load_corpus, without_secrets
from swsdist.config.model import Config

__all__ = ["Config", "config_from_dict", "dump_config", "load_config", "load_corpus", "without_secrets"]
