"""Writing an object only if it is still what it was, which S3 and some of its like can do (If-None-Match, If-Match).

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import UnsupportedOperation

from swsdist.io.failures import s3_error_code

#: What S3 answers to a conditional write: the file is another than was thought; it does not know such writes.
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409", "404")
_NOT_KNOWN = ("NotImplemented", "InvalidArgument", "InvalidRequest", "501")


def put_if(
    call: Callable[..., Mapping[str, object]], bucket: str, key: str, data: bytes, etag: str | None
) -> str | None:
    """Put an object in the place of one of this ETag; of None: where there is none.

    Args:
        call: asks S3, of a method of its API and its parameters.
        bucket, key: where.
        data: the whole object.
        etag: without quotation marks.

    Returns:
        Its ETag; None if another object is there.

    Raises:
        io.UnsupportedOperation: the server does not know conditional writes.
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
