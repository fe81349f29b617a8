"""Write an object only if it is unchanged, on S3 and compatible servers that support it (If-None-Match, If-Match).

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import UnsupportedOperation

from swsdist.io.failures import s3_error_code

#: S3's answers to a conditional write: the file differs from the expected one; the server lacks conditional writes.
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409", "404")
_NOT_KNOWN = ("NotImplemented", "InvalidArgument", "InvalidRequest", "501")


def put_if(
    call: Callable[..., Mapping[str, object]], bucket: str, key: str, data: bytes, etag: str | None
) -> str | None:
    """Replace an object that has this ETag; with None, create a new object.

    Args:
        call: S3 request, given a method of its API and the parameters.
        bucket, key: the object.
        data: the complete object.
        etag: without quotation marks.

    Returns:
        The new ETag; None if a different object exists.

    Raises:
        io.UnsupportedOperation: the server lacks conditional writes.
    """
    still = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
    try:
        answer = call("put_object", Bucket=bucket, Key=key, Body=data, **still)
    except Exception as error:
        code = s3_error_code(error)
        if code in _CHANGED:
            return None
        if code in _NOT_KNOWN:
            raise UnsupportedOperation(f"the server does not know conditional writes ({error})") from None
        raise
    return str(answer["ETag"])
