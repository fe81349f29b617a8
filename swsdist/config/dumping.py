"""Write a `Config` as YAML, with or without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from swsdist.config.model import Config
from swsdist.config.suggest import is_one_or_more, shown

#: Options of s3fs and its clients that hold no secret; all others may.
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
    """The config without parts of `storage` that may hold a secret, for files that people pass on.

    Readers of such a file have keys and tokens in the environment, where S3 clients look for them.
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
    """A config as YAML with every key; `load_config` reads the same config from it, in any folder."""
    # ruamel's emitter does not preserve text with U+0085.
    values = config.model_dump(mode="json")
    for name, field in Config.model_fields.items():
        if is_one_or_more(field) and len(values[name]) == 1:
            (values[name],) = values[name]
    return "".join(f"{line}\n" for line in _lines({name: _escape(value) for name, value in values.items()}))


def _escape(value: object) -> object:
    """The value with every dollar sign doubled, as the loader expects."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _escape(each) for key, each in value.items()}
    return [_escape(each) for each in value] if isinstance(value, list) else value


def _lines(values: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """A mapping in block style; lists and their contents in flow style."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{shown(key)}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{shown(key)}: {shown(value)}"
