"""From a `Config` back to YAML, and what of it may be written into files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from swsdist.config.model import Config
from swsdist.config.suggest import is_one_or_more, shown

#: Options for s3fs, and for the clients that it makes, that may be written into files; all others may hold a secret.
_NOT_SECRET: dict[str, object] = {
    **dict.fromkeys(("anon", "endpoint_url", "use_ssl", "requester_pays", "version_aware", "cache_regions"), True),
    **dict.fromkeys(("default_block_size", "default_fill_cache", "max_concurrency", "fixed_upload_size"), True),
    "client_kwargs": dict.fromkeys(("endpoint_url", "region_name", "api_version", "use_ssl", "verify"), True),
    "config_kwargs": {
        **dict.fromkeys(("region_name", "signature_version", "connect_timeout", "read_timeout"), True),
        "max_pool_connections": True,
        "retries": {"max_attempts": True, "total_max_attempts": True, "mode": True},
        "s3": {"addressing_style": True, "payload_signing_enabled": True, "use_accelerate_endpoint": True},
    },
    "s3_additional_kwargs": dict.fromkeys(("ACL", "ServerSideEncryption", "StorageClass", "RequestPayer"), True),
}
#: A name and password in a URL.
_USER_INFO = re.compile(r"(\w+://)[^/@]*@")


def without_secrets(config: Config) -> Config:
    """The same config with only those parts of `storage` that are known to hold no secret, for files that people pass on.

    Whoever reads such a file back has keys and tokens in the environment, where S3 clients look for them.
    """

    def kept(values: Mapping[str, object], allowed: Mapping[str, object]) -> dict[str, object]:
        result: dict[str, object] = {}
        for name, value in values.items():
            inner = allowed.get(name)
            if isinstance(inner, Mapping) and isinstance(value, Mapping):
                result[name] = kept(value, inner)
            elif inner is True and isinstance(value, bool | int | float | str):
                result[name] = _USER_INFO.sub(r"\1", value) if isinstance(value, str) else value
        return result

    return config.model_copy(update={"storage": kept(config.storage, _NOT_SECRET)})


def dump_config(config: Config) -> str:
    """A config as YAML, every key written out; `load_config` reads the same config from it, wherever it lies."""
    # Not ruamel's emitter: what it writes for text with U+0085 is read back as other text.
    values = config.model_dump(mode="json")
    for name, field in Config.model_fields.items():
        if is_one_or_more(field) and len(values[name]) == 1:
            (values[name],) = values[name]
    return "".join(f"{line}\n" for line in _lines({name: _escape(value) for name, value in values.items()}))


def _escape(value: object) -> object:
    """The same value with every dollar sign doubled, so that it is read back as itself."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _escape(each) for key, each in value.items()}
    return [_escape(each) for each in value] if isinstance(value, list) else value


def _lines(values: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """A mapping in block style; lists, and what lies in them, in flow style."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{shown(key)}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{shown(key)}: {shown(value)}"
