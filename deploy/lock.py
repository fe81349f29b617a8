"""Write the locked requirements of the image from pyproject.toml: `make lock`.

Every package with its version and the SHA-256 of its wheels for Linux on x86-64 and ARM, as pip resolves them, without
installing any. `deploy/requirements.lock` is what runs, `deploy/build.lock` what builds the package itself, and
`deploy/requirements-gpu.lock` what runs on nodes with a GPU: the same versions, and the extras `gpu`, `ssl` and `pocketsphinx`,
which has no wheel for ARM, for x86-64.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Of the image; FROM in the Dockerfile says the same version.
PYTHON = "3.12"
PLATFORMS = {
    machine: [f"manylinux_2_{k}_{machine}" for k in (34, 31, 28, 27, 24, 17)] for machine in ("x86_64", "aarch64")
}
#: Extras of all images: what chains and pages need.
EXTRAS = ("hdf5", "figures", "whisper")
#: And of that for nodes with a GPU.
MORE = ("gpu", "ssl", "pocketsphinx")
#: Beside what pyproject.toml names: the agent of Ray's dashboard, which jobs are submitted to and metrics are read from.
BESIDE = ("ray[default]",)


def resolved(requirements: list[str], machine: str, same: str) -> dict[str, tuple[str, str]]:
    """Version and SHA-256 of the wheel, by package, as pip would install them on this machine.

    Args:
        requirements: what is wanted.
        machine: a key of PLATFORMS.
        same: a locked file's text, whose versions hold; may be empty.
    """
    platforms = [part for name in [*PLATFORMS[machine], f"manylinux2014_{machine}"] for part in ("--platform", name)]
    with tempfile.TemporaryDirectory() as folder:
        report, versions = Path(folder) / "report.json", Path(folder) / "versions.txt"
        versions.write_text("\n".join(re.findall(r"^\S+==\S+", same, re.M)))
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--target",
            folder,
        ]
        command += ["--only-binary", ":all:", "--python-version", PYTHON, "--implementation", "cp", *platforms]
        command += ["--constraint", str(versions), "--report", str(report)]
        subprocess.run([*command, *requirements], check=True)
        found = json.loads(report.read_text())["install"]
    return {
        one["metadata"]["name"].lower().replace("_", "-"): (
            one["metadata"]["version"],
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in found
    }


def locked(requirements: list[str], machines: tuple[str, ...] = tuple(PLATFORMS), same: str = "") -> str:
    """The text of a locked file for these machines, with the versions of another one."""
    each = {machine: resolved(requirements, machine, same) for machine in machines}
    versions = [{name: version for name, (version, _) in found.items()} for found in each.values()]
    if any(one != versions[0] for one in versions):
        apart = {name for one in versions for name, version in one.items() if versions[0].get(name) != version}
        sys.exit(f"the machines want other versions of: {', '.join(sorted(apart))}")
    kinds = " and ".join({"x86_64": "x86-64", "aarch64": "ARM"}[machine] for machine in machines)
    lines = [f"# Written by `make lock` from pyproject.toml; Python {PYTHON}, Linux on {kinds}."]
    for name in sorted(versions[0]):
        hashes = sorted({found[name][1] for found in each.values()})
        lines.append(f"{name}=={versions[0][name]} \\")
        lines.append(" \\\n".join(f"    --hash=sha256:{one}" for one in hashes))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    runs = [*project["project"]["dependencies"], *(each for extra in EXTRAS for each in extras[extra]), *BESIDE]
    plain = locked(runs)
    for name, text in (
        ("build.lock", locked(project["build-system"]["requires"])),
        ("requirements.lock", plain),
        # Nodes with and without a GPU work on one run, so they have the same versions.
        (
            "requirements-gpu.lock",
            locked([*runs, *(each for extra in MORE for each in extras[extra])], ("x86_64",), plain),
        ),
    ):
        (ROOT / "deploy" / name).write_text(text)


if __name__ == "__main__":
    main()
