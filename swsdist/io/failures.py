"""What file systems and S3 do: one function from their errors to ours, with file, cause, remedy, and whether a retry helps.

An error of a file system is told by its number (`errno`), one of S3 by the code that the server sent, which s3fs keeps as the
cause of the OSError that it raises. Numbers that only a mistake in a program makes (EBADF, EINVAL, ...) are left alone: they
are bugs, and so is an OSError without a number.

Sources: errno(3); https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from swsdist.core.errors import StorageError

#: The folder of temporary files in a local folder: their names tell nobody anything.
TEMPORARY = ".tmp"


class _Kind(NamedTuple):
    """What an error means: its word, what is wrong, what helps, and whether the same may work a little later."""

    cause: str
    message: str
    remedy: str
    passing: bool = False


_SERVER = "look at the network, and whether the server runs; run again: what was computed is kept"
_AGAIN = "run again: what was computed is kept"
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `storage: {anon: true}` for a public bucket"

_FULL = _Kind(
    "full",
    "there is no space left on the disk",
    "make room (df -h, df -i), or name another folder (temporary files: TMPDIR); run again: what was computed is kept",
    True,
)
_QUOTA = _Kind(
    "quota",
    "the quota of space is used up",
    "remove files, or ask for more; run again: what was computed is kept",
    True,
)
_PERMISSION = _Kind(
    "permission",
    "permission denied",
    "look at the rights to it and to the folders above (ls -ld), or name another place",
)
_TIMED_OUT = _Kind("timed-out", "it does not answer in time", _SERVER, True)
_LONG = _Kind("name-too-long", "the name is too long for the file system", "give a shorter name, or another folder")
_UNREACHABLE = _Kind("unreachable", "the server does not answer", _SERVER, True)
_GONE = _Kind("gone", "the disk or server that it lies on is gone", "mount it again, and run again", True)

_NUMBERS = {
    errno.ENOENT: _Kind("missing", "there is no such file or folder", "look at the path"),
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _QUOTA,
    errno.EROFS: _Kind(
        "read-only",
        "the file system is read-only",
        "mount it for writing, or name another place (the run folder: --run)",
    ),
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EMFILE: _Kind(
        "too-many-files",
        "too many files are open in this process",
        "raise the limit (ulimit -n 8192), or take fewer workers",
        True,
    ),
    errno.ENFILE: _Kind(
        "too-many-files", "too many files are open on this machine", "end other programs, or raise fs.file-max", True
    ),
    errno.ENAMETOOLONG: _LONG,
    errno.ENOTDIR: _Kind(
        "not-a-folder", "a part of this path is a file, and no folder", "name another, or move the file"
    ),
    errno.EISDIR: _Kind("a-folder", "it is a folder, and no file", "name a file"),
    errno.EEXIST: _Kind("exists", "there is a file of this name already", "name another place, or move the file away"),
    errno.ENOTEMPTY: _Kind("exists", "the folder is not empty", "name another place, or empty it"),
    errno.ELOOP: _Kind("loop", "it is a link that leads to itself", "look at the links (ls -l)"),
    errno.EFBIG: _Kind("too-large", "the file is too large for the file system", "name a folder on another one"),
    errno.ESTALE: _Kind(
        "stale",
        "the server has another file there now (stale NFS handle)",
        "mount the folder again, and run again",
        True,
    ),
    errno.EIO: _Kind("input-output", "the disk or the network failed", "look at the disk and the mount (dmesg)", True),
    errno.ETIMEDOUT: _TIMED_OUT,
    errno.EBUSY: _Kind("busy", "it is in use, or the server has too much to do", _AGAIN, True),
    errno.EINTR: _Kind("busy", "a signal interrupted it", _AGAIN, True),
    errno.EAGAIN: _Kind("busy", "it is in use, or the machine has too much to do", _AGAIN, True),
    errno.ENOMEM: _Kind("memory", "there is no memory left", "end other programs, or take fewer workers", True),
    errno.EREMOTEIO: _Kind("server", "the server failed", _SERVER, True),
    errno.ENODEV: _GONE,
    errno.ENXIO: _GONE,
    errno.ENOTCONN: _GONE,
    errno.ECONNREFUSED: _UNREACHABLE,
    errno.ECONNRESET: _UNREACHABLE,
    errno.ECONNABORTED: _UNREACHABLE,
    errno.EHOSTUNREACH: _UNREACHABLE,
    errno.EHOSTDOWN: _UNREACHABLE,
    errno.ENETUNREACH: _UNREACHABLE,
    errno.ENETDOWN: _UNREACHABLE,
}

_S3_REFUSED = _Kind("permission", "S3 refuses access", "look at the credentials and the bucket's policy")
_S3_UNKNOWN = _Kind(
    "credentials",
    "the S3 server does not accept the credentials",
    "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE",
)
_S3_EXPIRED = _Kind(
    "expired",
    "the S3 credentials have expired",
    "get new ones (aws sso login, ...); run again: what was computed is kept",
)
_S3_THROTTLED = _Kind("throttled", "the S3 server asks for fewer requests", f"take fewer workers, or {_AGAIN}", True)
_S3_BUCKET = _Kind("no-bucket", "there is no such bucket", "create it, or look at its spelling and the endpoint")
_S3_REGION = _Kind("region", "the bucket is in another region", "set storage.client_kwargs.region_name, or AWS_REGION")
_S3_SERVER = _Kind("server", "the S3 server failed", _AGAIN, True)
_S3_CUT = _Kind("cut-off", "what was sent to or by the S3 server was cut off or damaged", _SERVER, True)
_S3_FULL = _Kind("full", "there is no space left on the S3 server", "make room, or ask for more", True)

_CODES = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"), _S3_EXPIRED),
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity"), _S3_UNKNOWN),
    **dict.fromkeys(("AccessDenied", "AllAccessDisabled", "AccountProblem", "NotSignedUp", "403"), _S3_REFUSED),
    **dict.fromkeys(
        (
            "SlowDown",
            "ServiceUnavailable",
            "Throttling",
            "ThrottlingException",
            "RequestLimitExceeded",
            "TooManyRequests",
            "RequestThrottled",
            "BandwidthLimitExceeded",
            "503",
            "429",
        ),
        _S3_THROTTLED,
    ),
    **dict.fromkeys(("InternalError", "500", "502", "504", "XMinioServerNotInitialized"), _S3_SERVER),
    **dict.fromkeys(("PermanentRedirect", "AuthorizationHeaderMalformed", "301"), _S3_REGION),
    **dict.fromkeys(("QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"), _S3_FULL),
    # An upload in parts that is gone was aborted, or is complete and its answer was lost: both go when it is done again.
    **dict.fromkeys(("XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody", "NoSuchUpload"), _S3_CUT),
    "NoSuchBucket": _S3_BUCKET,
    "KeyTooLongError": _LONG,
    "RequestTimeout": _TIMED_OUT,
    "RequestTimeTooSkewed": _Kind(
        "clock", "this machine's clock is not that of the S3 server", "set it (timedatectl), and run again", True
    ),
    "InvalidObjectState": _Kind(
        "archived", "the object is in an archive (Glacier)", "restore it first, then do this stage again (--from)"
    ),
    "InvalidBucketName": _Kind("no-bucket", "this cannot be the name of a bucket", "look at its spelling"),
}

#: Exceptions of botocore that are no answer of a server.
_BOTO = {
    "NoCredentialsError": _Kind("credentials", "there are no S3 credentials", _CREDENTIALS),
    "PartialCredentialsError": _Kind("credentials", "there are no S3 credentials", _CREDENTIALS),
    "CredentialRetrievalError": _Kind("credentials", "the S3 credentials could not be fetched", _CREDENTIALS, True),
    "TokenRetrievalError": _S3_EXPIRED,
    "UnauthorizedSSOTokenError": _S3_EXPIRED,
    "SSOTokenLoadError": _S3_EXPIRED,
    "ProfileNotFound": _Kind("credentials", "there is no such profile of AWS", "look at AWS_PROFILE and ~/.aws/config"),
    "ChecksumError": _S3_CUT,
    "FlexibleChecksumError": _S3_CUT,
    "ResponseParserError": _S3_CUT,
    "ConnectionError": _UNREACHABLE,
    "HTTPClientError": _UNREACHABLE,
    "ParamValidationError": _Kind("wrong-name", "S3 does not take this name", "look at bucket and key"),
}

#: What lies in a file or folder itself, in its rights or its name: it is the same until somebody changes that. All else may
#: pass, says nothing of what is in the file, and is no reason to do without it.
FILE_FAULTS = frozenset({"missing", "permission", "not-a-folder", "a-folder", "loop", "name-too-long", "archived"})

#: What can only come of writing, whatever else was done meanwhile.
OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def explain(error: BaseException, where: str | None = None) -> StorageError | None:
    """What an error of a file system or of S3 means; None where it is none, or a program's mistake.

    Args:
        error: an OSError, or an exception of botocore or aiohttp; a StorageError is given back as it is.
        where: the file, where the error does not tell it, or tells that of a temporary one.
    """
    if isinstance(error, StorageError):
        return error
    kind = _kind(error)
    if kind is None:
        return None
    place = _place(error, where)
    said = error.strerror if isinstance(error, OSError) else None
    own = isinstance(error, OSError) and error.errno is not None and said and os.strerror(error.errno) not in said
    message = f"{kind.message} ({said})" if own else kind.message
    if place is not None and place.startswith("s3://"):
        if kind is _UNREACHABLE or kind is _TIMED_OUT:
            said, look = (
                f"the S3 server does not answer ({error})",
                "look at storage.endpoint_url, AWS_ENDPOINT_URL and the network",
            )
            return StorageError(said, where=place, remedy=look, cause=kind.cause, passing=True)
        if kind is _S3_BUCKET:
            message = f"there is no bucket {place.removeprefix('s3://').partition('/')[0]!r}"
        elif kind is _PERMISSION:
            kind = _S3_REFUSED
            message = f"{kind.message} ({error})"
        elif kind in _CODES.values():
            message = f"{message} ({error})"
    return StorageError(message, where=place, remedy=kind.remedy, cause=kind.cause, passing=kind.passing)


def transient_messages() -> frozenset[str]:
    """What programs call errors that may pass, in the C library's words."""
    return frozenset(os.strerror(number) for number, kind in _NUMBERS.items() if kind.passing)


def as_file_fault(error: OSError | StorageError, where: str | None = None) -> StorageError:
    """What an error means that lies in the file itself (`FILE_FAULTS`).

    The one rule for all that reads what a user names: such a fault rejects the document, or is an error of its table; what may
    pass is raised here, so that the task is tried again, and then it or the run ends.

    Raises:
        OSError, StorageError: it may pass.
    """
    told = explain(error, where)
    if told is None or told.cause not in FILE_FAULTS:
        raise error if isinstance(error, StorageError) or told is None else told from error
    return told


@contextmanager
def storage_errors(where: str) -> Iterator[None]:
    """Raise what file systems and S3 do as a StorageError that names this place; a missing file stays a FileNotFoundError.

    Raises:
        StorageError: see `explain`.
    """
    try:
        yield
    except Exception as error:
        told = explain(error, where)
        if told is None or told is error or told.cause == "missing":
            raise
        raise told from error


def _kind(error: BaseException) -> _Kind | None:
    answer = s3_error_code(error)
    if answer is not None and answer in _CODES:
        return _CODES[answer]
    package = type(error).__module__.partition(".")[0]
    if package in ("botocore", "aiobotocore"):
        return next((_BOTO[one.__name__] for one in type(error).__mro__ if one.__name__ in _BOTO), None)
    if package == "aiohttp":  # what botocore reads itself, a listing say, broke off; or there was no connection
        return _S3_CUT if type(error).__name__ == "ClientPayloadError" else _UNREACHABLE
    if not isinstance(error, OSError) or isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, FileNotFoundError) and "bucket does not exist" in str(error):
        return _S3_BUCKET
    if error.errno in _NUMBERS:
        return _NUMBERS[error.errno]
    for one, number in (
        (PermissionError, errno.EACCES),
        (TimeoutError, errno.ETIMEDOUT),
        (FileNotFoundError, errno.ENOENT),
    ):
        if isinstance(error, one):  # of s3fs, without a number
            return _NUMBERS[number]
    return _UNREACHABLE if isinstance(error, ConnectionError) else None


def s3_error_code(error: BaseException) -> str | None:
    """The code of the answer of S3 that an error is, or comes of."""
    exceptions = sys.modules.get("botocore.exceptions")
    if exceptions is None:
        return None
    for one in (error, error.__cause__, error.__context__):
        if isinstance(one, exceptions.ClientError):
            code: str = one.response.get("Error", {}).get("Code", "")
            return code
    return None


def _place(error: BaseException, where: str | None) -> str | None:
    """The file that an error is about."""
    name = error.filename if isinstance(error, OSError) else None
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str):
        return where
    folder, found, _ = name.partition(f"/{TEMPORARY}/swsdist-")
    return where or (folder if found else name)
