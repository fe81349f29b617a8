"""Texts for messages: names on one line, suggestions, counts with their nouns, and no secrets.

A file's name may contain anything but a slash: a line break or tab would break a table of lines, and the terminal would
execute an escape sequence.

Messages, tracebacks and journals pass `redacted` first, because libraries put their arguments into messages: a url with
a password, a signed request. Secrets are

- name and password in a url (`https://name:password@host`), and the parts of a signed url (`?X-Amz-Signature=...`);
- values of environment variables with telling names (`AWS_SECRET_ACCESS_KEY`, `RAY_AUTH_TOKEN`, `..._PASSWORD`);
- values of storage options with telling names, once a client uses them (`remember`).

Values shorter than eight characters are not treated as secrets, since they would match in any text.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping

#: Unicode's general categories to escape: control characters, and separators of lines and paragraphs.
_BREAKING = frozenset(("Cc", "Zl", "Zp"))
#: What no file keeps: a zero byte, and half of a surrogate pair, which JSON can write.
_UNKEPT = re.compile("[\0\ud800-\udfff]")

#: Characters of a text in a message.
_BRIEF = 60


def shown(text: str) -> str:
    """A text on one line: control characters and line separators as Python writes them (`\\n`, `\\t`, `\\x1b`,
    `\\u2028`).

    Lone surrogates (from file names that are not UTF-8) and backslashes stay.
    """
    if text.isprintable():
        return text
    return "".join(repr(item)[1:-1] if unicodedata.category(item) in _BREAKING else item for item in text)


def brief(text: str) -> str:
    """A text as `shown`, of which a message holds 60 characters at most."""
    return shown(text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…")


def kept(text: str) -> bool:
    """Whether files keep a text: it has no zero byte, and no half of a surrogate pair."""
    return not _UNKEPT.search(text)


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most similar to a misspelt word, in whatever case; None if none is similar."""
    from difflib import get_close_matches

    lower = {choice.lower(): choice for choice in choices}
    return next((lower[close] for close in get_close_matches(word.lower(), lower, 1)), None)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Addition to a message about an unknown word: the closest choice, if any."""
    close = closest(word, choices)
    return "" if close is None else f"; did you mean {close}?"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count and its noun: `1 class`, `2 classes`. The plural is the noun with an s unless given."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


#: Replacement of a secret.
HIDDEN = "***"

#: Name and password in a url.
_USER_INFO = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)[^/@\s'\"<>]+@")
#: Parts of a signed url that grant access to any holder: of S3 (versions 4 and 2), Google and Azure.
_SIGNED = re.compile(
    r"(?i)([?&](?:(?:X-Amz|X-Goog)-(?:Signature|Credential|Security-Token)|Signature|AWSAccessKeyId|sig|access_token)=)"
    r"[^&\s'\"<>]+"
)
#: Names of variables and options that hold secrets.
_SECRET = re.compile(r"(?i)(?:TOKEN|SECRET|PASSWORD|PASSWD|ACCESS_?KEY|ACCESS_KEY_ID|CUSTOMERKEY)$|^(?:key|username)$")

_LEAST = 8

_known: set[str] = set()


def redacted(text: str) -> str:
    """The text with every known secret replaced by `HIDDEN`."""
    text = _SIGNED.sub(rf"\1{HIDDEN}", _USER_INFO.sub(r"\1", text))
    secrets = {value for name, value in os.environ.items() if len(value) >= _LEAST and _SECRET.search(name)}
    for secret in sorted(secrets | _known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def is_signed(url: str) -> bool:
    """Whether a url is signed, so that any reader may use it."""
    return _SIGNED.search(url) is not None


def names_secret(option: str) -> bool:
    """Whether options of this name hold secrets."""
    return _SECRET.search(option) is not None


def remember(options: object, name: str = "") -> None:
    """Remember the secrets among a client's options, by name: strings, in mappings and lists of any depth."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            remember(value, str(key))
    elif isinstance(options, list | tuple):
        for value in options:
            remember(value, name)
    elif isinstance(options, str) and len(options) >= _LEAST and names_secret(name):
        _known.add(options)
