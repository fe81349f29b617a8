"""Map errors of file systems and S3 to ours: `errno` and S3's error codes to codes of swsdist, only here.

An error of a file system is identified by its number (`errno`), one of S3 by the server's code, which s3fs keeps as the
cause of its OSError. Numbers caused only by programming mistakes (EBADF, EINVAL, ...) are not mapped: they are bugs,
and so is an OSError without a number.

Sources: errno(3); https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from swsdist.core.codes import Code, families
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError, TransientError

#: The folder of temporary files in a local folder; messages omit their names.
TEMPORARY = ".tmp"

_NUMBERS: dict[Code[StorageError], tuple[int, ...]] = {
    codes.MISSING_FILE: (errno.ENOENT,),
    codes.DISK_FULL: (errno.ENOSPC,),
    codes.QUOTA_EXCEEDED: (errno.EDQUOT,),
    codes.READ_ONLY_FILE_SYSTEM: (errno.EROFS,),
    codes.PERMISSION_DENIED: (errno.EACCES, errno.EPERM),
    codes.TOO_MANY_OPEN_FILES: (errno.EMFILE,),
    codes.SYSTEM_FILE_LIMIT: (errno.ENFILE,),
    codes.NAME_TOO_LONG: (errno.ENAMETOOLONG,),
    codes.NOT_A_FOLDER: (errno.ENOTDIR,),
    codes.PATH_IS_A_FOLDER: (errno.EISDIR,),
    codes.EXISTING_FILE: (errno.EEXIST,),
    codes.NONEMPTY_FOLDER: (errno.ENOTEMPTY,),
    codes.LINK_LOOP: (errno.ELOOP,),
    codes.FILE_TOO_LARGE: (errno.EFBIG,),
    codes.STALE_FILE_HANDLE: (errno.ESTALE,),
    codes.IO_ERROR: (errno.EIO,),
    codes.STORAGE_TIMEOUT: (errno.ETIMEDOUT,),
    codes.RESOURCE_BUSY: (errno.EBUSY, errno.EAGAIN),
    codes.INTERRUPTED_CALL: (errno.EINTR,),
    codes.OUT_OF_MEMORY: (errno.ENOMEM,),
    codes.FILE_SERVER_ERROR: (errno.EREMOTEIO,),
    codes.DEVICE_GONE: (errno.ENODEV, errno.ENXIO, errno.ENOTCONN),
    codes.SERVER_UNREACHABLE: (
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED),
        *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN),
    ),
}
_ERRNO = {number: code for code, numbers in _NUMBERS.items() for number in numbers}

#: Error codes in S3's answers.
_S3_ANSWERS: dict[Code[StorageError], tuple[str, ...]] = {
    codes.EXPIRED_S3_CREDENTIALS: ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"),
    codes.INVALID_S3_CREDENTIALS: ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity"),
    codes.S3_ACCESS_DENIED: ("AccessDenied", "AllAccessDisabled", "AccountProblem", "NotSignedUp", "403"),
    codes.S3_THROTTLED: (
        *("SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded"),
        *("TooManyRequests", "RequestThrottled", "BandwidthLimitExceeded", "503", "429"),
    ),
    codes.S3_SERVER_ERROR: ("InternalError", "500", "502", "504", "XMinioServerNotInitialized"),
    codes.WRONG_S3_REGION: ("PermanentRedirect", "AuthorizationHeaderMalformed", "301"),
    codes.S3_STORAGE_FULL: ("QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"),
    # A missing multipart upload was aborted, or completed without its answer arriving: repeating it helps in both
    # cases.
    codes.S3_TRANSFER_DAMAGED: ("XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody", "NoSuchUpload"),
    codes.NO_SUCH_BUCKET: ("NoSuchBucket",),
    codes.NAME_TOO_LONG: ("KeyTooLongError",),
    codes.STORAGE_TIMEOUT: ("RequestTimeout",),
    codes.CLOCK_SKEW: ("RequestTimeTooSkewed",),
    codes.ARCHIVED_OBJECT: ("InvalidObjectState",),
    families.INVALID_S3_NAME.saying("this cannot be the name of a bucket{detail}", "check its spelling"): (
        "InvalidBucketName",
    ),
}
_S3 = {answer: code for code, answers in _S3_ANSWERS.items() for answer in answers}

#: Exceptions of botocore that are not answers of a server, by class.
_BOTO: dict[str, Code[StorageError]] = {
    "NoCredentialsError": codes.NO_S3_CREDENTIALS,
    "PartialCredentialsError": codes.NO_S3_CREDENTIALS,
    "CredentialRetrievalError": codes.S3_CREDENTIALS_UNAVAILABLE,
    "TokenRetrievalError": codes.EXPIRED_S3_CREDENTIALS,
    "UnauthorizedSSOTokenError": codes.EXPIRED_S3_CREDENTIALS,
    "SSOTokenLoadError": codes.EXPIRED_S3_CREDENTIALS,
    "ProfileNotFound": codes.NO_SUCH_AWS_PROFILE,
    "ChecksumError": codes.S3_TRANSFER_DAMAGED,
    "FlexibleChecksumError": codes.S3_TRANSFER_DAMAGED,
    "ResponseParserError": codes.S3_TRANSFER_DAMAGED,
    "ConnectionError": codes.SERVER_UNREACHABLE,
    "HTTPClientError": codes.SERVER_UNREACHABLE,
    "ParamValidationError": families.INVALID_S3_NAME.saying(
        "S3 does not take this name{detail}", "check bucket and key"
    ),
}


def _names(of: Iterable[Code[StorageError]]) -> frozenset[str]:
    return frozenset(code.name for code in of)


#: Access is denied; the file or object may exist.
DENIED = _names([codes.PERMISSION_DENIED, codes.S3_ACCESS_DENIED])

#: Lasting faults of a file or folder, its permissions or its name. All others may be transient, are independent of the
#: file's content, and are no reason to continue without it.
FILE_FAULTS = DENIED | _names(
    [
        codes.MISSING_FILE,
        codes.NOT_A_FOLDER,
        codes.PATH_IS_A_FOLDER,
        codes.LINK_LOOP,
        codes.NAME_TOO_LONG,
        codes.ARCHIVED_OBJECT,
    ]
)

#: The file or object exists, but cannot be read.
UNREADABLE = DENIED | _names([codes.ARCHIVED_OBJECT])

#: Storage is full.
FULL = _names([codes.DISK_FULL, codes.QUOTA_EXCEEDED, codes.S3_STORAGE_FULL])

#: Faults of a local disk, a mount or a process, which another machine may not have.
NODE_FAULTS = FULL | _names(
    [
        codes.READ_ONLY_FILE_SYSTEM,
        codes.IO_ERROR,
        codes.DEVICE_GONE,
        codes.STALE_FILE_HANDLE,
        codes.TOO_MANY_OPEN_FILES,
        codes.SYSTEM_FILE_LIMIT,
    ]
)

#: Numbers that only writing causes.
OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def explain(error: BaseException, where: str | None = None) -> StorageError | None:
    """The error of a file system or of S3 as a StorageError; None for other exceptions and for programming mistakes.

    Args:
        error: an OSError, or an exception of botocore or aiohttp; a StorageError is returned unchanged.
        where: the file, if the error does not name it, or names a temporary one.
    """
    if isinstance(error, StorageError):
        return error
    code = _code(error)
    if code is None:
        return None
    place = _place(error, where)
    text = error.strerror if isinstance(error, OSError) else None
    specific = isinstance(error, OSError) and error.errno is not None and text and os.strerror(error.errno) not in text
    detail = f" ({text})" if specific else ""
    if place is not None and place.startswith("s3://"):
        if code in (codes.SERVER_UNREACHABLE, codes.STORAGE_TIMEOUT):
            code, detail = codes.S3_UNREACHABLE, f" ({error})"
        elif code is codes.NO_SUCH_BUCKET:
            detail = f": {place.removeprefix('s3://').partition('/')[0]}"
        elif code is codes.PERMISSION_DENIED:
            code, detail = codes.S3_ACCESS_DENIED, f" ({error})"
        elif code in _S3.values():
            detail += f" ({error})"
    return code(where=place, detail=detail)


def transient_messages() -> frozenset[str]:
    """The C library's messages of transient errors, to search the output of programs for."""
    return frozenset(os.strerror(number) for number, code in _ERRNO.items() if issubclass(code.error, TransientError))


def as_file_fault(error: OSError | StorageError, where: str | None = None) -> StorageError:
    """The StorageError of a fault in the file itself (`FILE_FAULTS`).

    Defines, for all readers of user files, that such a fault rejects the document, or is an error of its table; any
    other fault is raised here, so that the task is retried, and finally it or the run fails.

    Raises:
        OSError, StorageError: the fault is not in the file.
    """
    explained = explain(error, where)
    if explained is None or explained.code not in FILE_FAULTS:
        raise error if isinstance(error, StorageError) or explained is None else explained from error
    return explained


@contextmanager
def storage_errors(where: str) -> Iterator[None]:
    """Raise errors of file systems and S3 as a StorageError that names this place; a missing file stays a
    FileNotFoundError.

    Raises:
        StorageError: see `explain`.
    """
    try:
        yield
    except Exception as error:
        explained = explain(error, where)
        if explained is None or explained is error or explained.code == codes.MISSING_FILE.name:
            raise
        raise explained from error


def _code(error: BaseException) -> Code[StorageError] | None:
    answer = s3_error_code(error)
    if answer is not None and answer in _S3:
        return _S3[answer]
    package = type(error).__module__.partition(".")[0]
    if package in ("botocore", "aiobotocore"):
        return next((_BOTO[base.__name__] for base in type(error).__mro__ if base.__name__ in _BOTO), None)
    if (
        package == "aiohttp"
    ):  # a body read by botocore itself, for example of a listing, broke off; or there was no connection
        return codes.S3_TRANSFER_DAMAGED if type(error).__name__ == "ClientPayloadError" else codes.SERVER_UNREACHABLE
    if not isinstance(error, OSError) or isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, FileNotFoundError) and "bucket does not exist" in str(error):
        return codes.NO_SUCH_BUCKET
    if error.errno in _ERRNO:
        return _ERRNO[error.errno]
    for kind, number in (
        (PermissionError, errno.EACCES),
        (TimeoutError, errno.ETIMEDOUT),
        (FileNotFoundError, errno.ENOENT),
    ):
        if isinstance(error, kind):  # of s3fs, without a number
            return _ERRNO[number]
    return codes.SERVER_UNREACHABLE if isinstance(error, ConnectionError) else None


def s3_error_code(error: BaseException) -> str | None:
    """S3's code of an error, or of its cause."""
    exceptions = sys.modules.get("botocore.exceptions")
    if exceptions is None:
        return None
    for exception in (error, error.__cause__, error.__context__):
        if isinstance(exception, exceptions.ClientError):
            code: str = exception.response.get("Error", {}).get("Code", "")
            return code
    return None


def _place(error: BaseException, where: str | None) -> str | None:
    """The file that an error concerns."""
    name = error.filename if isinstance(error, OSError) else None
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str):
        return where
    folder, separator, _ = name.partition(f"/{TEMPORARY}/swsdist-")
    return where or (folder if separator else name)
