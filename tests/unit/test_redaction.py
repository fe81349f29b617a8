"""Secrets are told to nobody."""

import json
import pickle
import re
from pathlib import Path

import pytest

from swsdist.accounts.journal import Journal
from swsdist.core import text as redaction
from swsdist.core.errors import StorageError, UserError
from swsdist.core.text import redacted, remember, shown
from swsdist.io.filesystem import Folder, is_remote

SIGNED = "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Credential=AKIA%2F1&X-Amz-Security-Token=t%2F2&X-Amz-Signature=0a1b"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())


def test_what_is_secret_in_a_url_and_names_stay_on_their_line() -> None:
    """A signed one is no path: it would stand in stores and reports, and opens the door to whoever reads them."""
    for text, told in (
        ('connect to "http://me:pass@host:9000/b"!', 'connect to "http://host:9000/b"!'),
        ("https://token@host/x and s3://b/a@b.wav", "https://host/x and s3://b/a@b.wav"),
        (SIGNED, re.sub(r"(Credential|Token|Signature)=[^&]+", r"\1=***", SIGNED)),
        ("s3://b/k?AWSAccessKeyId=AK&Signature=s%3D&Expires=1", "s3://b/k?AWSAccessKeyId=***&Signature=***&Expires=1"),
        ("/corpus/sig=1/a.wav, me@host: 12 of 30", "/corpus/sig=1/a.wav, me@host: 12 of 30"),
    ):
        assert redacted(text) == told
    for scheme in ("https", "s3"):
        with pytest.raises(UserError) as caught:
            is_remote(SIGNED.replace("https", scheme))
        assert "0a1b" not in str(caught.value)
    lines = {"a\nb\tc": r"a\nb\tc", "\x1b[2J\x85\u2028": r"\x1b[2J\x85\u2028"}
    lines |= {name: name for name in ("ä b\u00a0c\\n", "caf\udce9")}
    assert {name: shown(name) for name in lines} == lines


def test_what_the_environment_holds_and_a_client_was_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "RAY_AUTH_TOKEN", "MY_PASSWORD"):
        monkeypatch.setenv(name, f"Hush{name}")
        assert redacted(f"<Hush{name}>") == "<***>"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert redacted("a test in eu-central-1") == "a test in eu-central-1"
    storage = {
        "key": "hush-hush-1",
        "client_kwargs": {"aws_secret_access_key": "hush-hush-2", "region_name": "eu-central-1"},
        "more": [{"SSECustomerKey": "hush-hush-3"}],
        "endpoint_url": "http://127.0.0.1:9000",
    }
    text = "hush-hush-1 hush-hush-2 hush-hush-3 eu-central-1 http://127.0.0.1:9000"
    assert redacted(text) == text
    remember(storage)
    assert redacted(text) == "*** *** *** eu-central-1 http://127.0.0.1:9000"


def test_errors_and_journals(tmp_path: Path) -> None:
    remember({"secret": "hush-hush"})
    error = StorageError("hush-hush failed", where="http://me:pw@host/", remedy="not hush-hush", code="disk-full")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == "http://host/: *** failed [disk-full]\n  remedy: not ***"
        assert one.args == ("*** failed",)
    journal = Journal(Folder(str(tmp_path)), "driver")
    journal.write("error", traceback="Traceback: hush-hush")
    journal.close()
    (text,) = (path.read_text() for path in (tmp_path / "accounts").iterdir())
    assert "hush" not in text
    assert "Traceback: ***" in [json.loads(line).get("traceback") for line in text.splitlines()]
