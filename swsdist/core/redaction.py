"""Secrets never leave the program: messages, tracebacks and journals pass `redacted` first.

Libraries put into their messages whatever they were given: a url with a password, a signed request. Known as secret are

- name and password in a url (`https://name:password@host`), and the parts of a signed one (`?X-Amz-Signature=...`);
- values of variables of the environment whose names say so (`AWS_SECRET_ACCESS_KEY`, `RAY_AUTH_TOKEN`, `..._PASSWORD`);
- values of options of the storage whose names say so, as soon as a client is made with them (`remember`).

A value of fewer than eight characters is taken for no secret, since it would be found in any text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

#: What stands for a secret.
HIDDEN = "***"

#: Name and password in a url.
_USER_INFO = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)[^/@\s'\"<>]+@")
#: What makes a signed url good for whoever has it: of S3 (versions 4 and 2), Google and Azure.
_SIGNED = re.compile(
    r"(?i)([?&](?:(?:X-Amz|X-Goog)-(?:Signature|Credential|Security-Token)|Signature|AWSAccessKeyId|sig|access_token)=)"
    r"[^&\s'\"<>]+"
)
#: Names of variables and options that hold secrets.
_SECRET = re.compile(r"(?i)(?:TOKEN|SECRET|PASSWORD|PASSWD|ACCESS_?KEY|ACCESS_KEY_ID|CUSTOMERKEY)$|^(?:key|username)$")

_LEAST = 8

_known: set[str] = set()


def redacted(text: str) -> str:
    """The text with every secret that is known replaced by `HIDDEN`."""
    text = _SIGNED.sub(rf"\1{HIDDEN}", _USER_INFO.sub(r"\1", text))
    result = {value for name, value in os.environ.items() if len(value) >= _LEAST and _SECRET.search(name)}
    for secret in sorted(result | _known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def is_signed(url: str) -> bool:
    """Whether whoever reads this url may do what it is signed for."""
    return _SIGNED.search(url) is not None


def names_secret(option: str) -> bool:
    """Whether options of this name hold secrets."""
    return _SECRET.search(option) is not None


def remember(options: object, name: str = "") -> None:
    """Know the secrets among options of a client: strings, in mappings and lists of any depth, by the names they have."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            remember(value, str(key))
    elif isinstance(options, list | tuple):
        for value in options:
            remember(value, name)
    elif isinstance(options, str) and len(options) >= _LEAST and names_secret(name):
        _known.add(options)
