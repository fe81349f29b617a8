"""The doctor: is this machine fit?"""

from __future__ import annotations

import os

import click


@click.command()
@click.option("--s3", metavar="s3://BUCKET/PREFIX", help="Also try to list this place.")
@click.option("--endpoint-url", help="Of the S3 server.")
@click.option("--ray/--no-ray", default=True, help="Start a private Ray, or reach the one at RAY_ADDRESS.")
def doctor(s3: str | None, endpoint_url: str | None, ray: bool) -> int:
    """Machine, versions, exact BLAS, extractors, GPU, Ray, S3: what works and what does not."""
    from swsdist.pipeline.inspection.diagnosis import diagnose

    bad = 0
    for finding in diagnose(s3, {"endpoint_url": endpoint_url} if endpoint_url else {}, ray, os.environ):
        bad += not finding.good
        print(f"{'ok ' if finding.good else 'BAD'}  {finding.name:<12} {finding.text}")
    return 2 if bad else 0
