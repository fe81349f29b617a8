"""What deploy/ holds for platforms that are not here is held against their schemas and rules."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import ray
from jsonschema import Draft7Validator
from markdown_pages import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML

import swsdist

DEPLOY = ROOT / "deploy"
LOCK = runpy.run_path(str(DEPLOY / "lock.py"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
IMAGE = f"registry.example.org/swsdist:{swsdist.__version__}"

#: Of the KubeRay operator's CRDs (v1.5), the fields of `spec` that a file of ours might use; an unknown key is an error, as
#: Kubernetes' strict validation has it. Templates of pods are those of Kubernetes' core, as far as we use them.
TEXT, NUMBER, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXTS = {"type": "object", "additionalProperties": TEXT}
QUANTITIES = {
    "type": "object",
    "additionalProperties": {"type": ["string", "integer"], "pattern": r"^[0-9.]+([KMGTPE]i|[mkMGTPE])?$"},
}
PROBE = _object(
    exec=_object(("command",), command=_list(TEXT)),
    initialDelaySeconds=NUMBER,
    periodSeconds=NUMBER,
    timeoutSeconds=NUMBER,
    failureThreshold=NUMBER,
)
CONTAINER = _object(
    ("name", "image"),
    name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
    image=TEXT,
    args=_list(TEXT),
    env=_list(_object(("name", "value"), name=TEXT, value=TEXT)),
    resources=_object(requests=QUANTITIES, limits=QUANTITIES),
    readinessProbe=PROBE,
    livenessProbe=PROBE,
    volumeMounts=_list(_object(("name", "mountPath"), name=TEXT, mountPath=TEXT, readOnly=YES)),
)
TEMPLATE = _object(
    ("spec",),
    spec=_object(
        ("containers",),
        containers=_list(CONTAINER),
        volumes=_list(
            _object(
                ("name",),
                name=TEXT,
                configMap=_object(("name",), name=TEXT),
                secret=_object(("secretName",), secretName=TEXT),
            )
        ),
        restartPolicy={"enum": ["Always", "OnFailure", "Never"]},
        securityContext=_object(runAsNonRoot=YES, runAsUser=NUMBER),
        nodeSelector=TEXTS,
        tolerations=_list(_object(key=TEXT, operator={"enum": ["Exists", "Equal"]}, value=TEXT, effect=TEXT)),
        terminationGracePeriodSeconds=NUMBER,
    ),
)
CLUSTER = _object(
    ("headGroupSpec",),
    rayVersion=TEXT,
    authOptions=_object(mode={"enum": ["token", "disabled"]}),
    enableInTreeAutoscaling=YES,
    autoscalerOptions=_object(
        upscalingMode={"enum": ["Default", "Aggressive", "Conservative"]}, idleTimeoutSeconds=NUMBER, resources=TEXTS
    ),
    headGroupSpec=_object(("template",), rayStartParams=TEXTS, template=TEMPLATE, serviceType=TEXT),
    workerGroupSpecs=_list(
        _object(
            ("groupName", "template"),
            groupName=TEXT,
            replicas=NUMBER,
            minReplicas=NUMBER,
            maxReplicas=NUMBER,
            rayStartParams=TEXTS,
            template=TEMPLATE,
        )
    ),
)
JOB = _object(
    entrypoint=TEXT,
    shutdownAfterJobFinishes=YES,
    ttlSecondsAfterFinished=NUMBER,
    backoffLimit=NUMBER,
    activeDeadlineSeconds=NUMBER,
    rayClusterSpec=CLUSTER,
)
#: Of Kubernetes' core.
CRON = _object(
    ("schedule", "jobTemplate"),
    schedule={"type": "string", "pattern": r"^\S+( \S+){4}$"},
    concurrencyPolicy={"enum": ["Allow", "Forbid", "Replace"]},
    jobTemplate=_object(("spec",), spec=_object(("template",), backoffLimit=NUMBER, template=TEMPLATE)),
)


def _top(kind: str, spec: dict[str, Any], api: str = "ray.io/v1") -> dict[str, Any]:
    metadata = _object(("name",), name=TEXT, labels=TEXTS)
    head = {"apiVersion": {"const": api}, "kind": {"const": kind}}
    return _object(("apiVersion", "kind", "metadata", "spec"), **head, metadata=metadata, spec=spec)


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = YAML(typ="safe").load((DEPLOY / name).read_text())
    return read


def _wrong(schema: dict[str, Any], values: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in Draft7Validator(schema).iter_errors(values)]


def _clusters() -> dict[str, dict[str, Any]]:
    return {
        "RayJob": _read("kubernetes/rayjob.yaml")["spec"]["rayClusterSpec"],
        "RayCluster": _read("kubernetes/raycluster.yaml")["spec"],
    }


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("kubernetes/rayjob.yaml", _top("RayJob", JOB)),
        ("kubernetes/raycluster.yaml", _top("RayCluster", CLUSTER)),
        ("kubernetes/index-every-night.yaml", _top("CronJob", CRON, "batch/v1")),
    ],
)
def test_kubernetes(name: str, schema: dict[str, Any]) -> None:
    values = _read(name)
    assert _wrong(schema, values) == []
    values["spec"]["entrypiont"] = "a slip"
    assert _wrong(schema, values) != []


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
def test_what_belongs_together_on_kubernetes(kind: str) -> None:
    cluster = _clusters()[kind]
    group, on_gpus = cluster["workerGroupSpecs"]
    head, worker = cluster["headGroupSpec"]["template"]["spec"], group["template"]["spec"]
    containers = [*head["containers"], *worker["containers"]]
    assert {one["image"] for one in containers} == {IMAGE}
    for each in (head, worker, on_gpus["template"]["spec"]):
        (one,) = each["containers"]
        assert [mount["name"] for mount in one["volumeMounts"]] == [volume["name"] for volume in each["volumes"]]
        assert one["env"][0]["value"].startswith(one["volumeMounts"][-1]["mountPath"])
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0", "no workers beside the driver"
    assert cluster["enableInTreeAutoscaling"]
    assert 1 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"], "without a node no worker fits"
    for one in containers:
        assert "memory" in one["resources"]["limits"]
        assert {"readinessProbe", "livenessProbe"} <= one.keys(), "the operator's own call wget"
    assert all(spec["securityContext"]["runAsNonRoot"] for spec in (head, worker))
    assert cluster["rayVersion"] == _locked("requirements.lock")["ray"]
    assert cluster["authOptions"] == {"mode": "token"}
    # Nodes with a GPU cost more: there is none until one is asked for. The operator tells Ray of the limit.
    assert on_gpus["minReplicas"] == on_gpus["replicas"] == 0 < on_gpus["maxReplicas"]
    spec = on_gpus["template"]["spec"]
    (one,) = spec["containers"]
    assert one["image"] == f"{IMAGE}-gpu"
    assert one["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert one["resources"]["limits"] == one["resources"]["requests"]
    assert not any("nvidia.com/gpu" in other["resources"]["limits"] for other in containers)
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    same = ("env", "readinessProbe", "livenessProbe")
    assert all(one[name] == worker["containers"][0][name] for name in same)
    assert spec["securityContext"] == worker["securityContext"]


def test_every_night_one_index_at_a_time_with_keys_that_change() -> None:
    spec = _read("kubernetes/index-every-night.yaml")["spec"]
    assert spec["concurrencyPolicy"] == "Forbid", "a second one finds the run locked"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    (one,) = pod["containers"]
    assert one["image"] == IMAGE
    assert one["args"][0] == "index"
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"]
    assert one["env"][0]["value"].startswith(one["volumeMounts"][0]["mountPath"])
    assert [mount["name"] for mount in one["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]


def test_the_job_runs_the_config_that_is_mounted() -> None:
    entry = _read("kubernetes/rayjob.yaml")["spec"]["entrypoint"]
    assert entry.startswith("swsdist run /config/config.yaml --set executor.kind=ray")


def test_cloud() -> None:
    """Ray's own schema of its cluster launcher, and what it says of spot workers."""
    schema = json.loads((Path(ray.__file__).parent / "autoscaler/ray-schema.json").read_text())
    values = _read("cloud/aws.yaml")
    assert _wrong(schema, values) == []
    assert _wrong(schema, {**values, "max_wrokers": 1}) != []
    types = values["available_node_types"]
    assert values["head_node_type"] in types
    head, worker = types[values["head_node_type"]], types["worker"]
    assert "InstanceMarketOptions" not in head["node_config"], "the driver is not to be taken away"
    assert worker["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    on_gpu = types["gpu"]
    assert on_gpu["resources"]["GPU"] == 1
    assert (on_gpu["min_workers"], on_gpu["max_workers"] > 0) == (0, True), "none until one is asked for"
    images = {node["node_config"]["ImageId"] for node in types.values()}
    (image,) = images
    assert f"s/{image}/" in (DEPLOY.parent / "docs/how-to/run-on-a-cloud.md").read_text(), (
        "the page says what to put there"
    )
    # Its commands stand for those of all nodes, but for what they install.
    commands = [one.replace("requirements-gpu.lock", "requirements.lock") for one in on_gpu["worker_setup_commands"]]
    assert commands == values["setup_commands"]
    # A profile that is named is all that a node has: the head's starts the others.
    profiles = {node["node_config"]["IamInstanceProfile"]["Name"] for node in (head, worker, on_gpu)}
    assert len(profiles) == 2
    assert 1 <= worker["min_workers"] <= worker["max_workers"] <= values["max_workers"]
    assert all("RAY_AUTH_MODE=token" in values[f"{name}_start_ray_commands"][-1] for name in ("head", "worker"))
    # What is copied is here, or the page says how it is made; what is installed is what is copied.
    page = (DEPLOY.parent / "docs/how-to/run-on-a-cloud.md").read_text()
    mounts = values["file_mounts"]
    assert {one for one in mounts.values() if not (DEPLOY.parent / one).is_file()} == {"~/.ray/auth_token", "dist"}
    assert "> ~/.ray/auth_token" in page
    assert "--wheel-dir dist " in page
    assert all(f"`{name}`" in page for name in profiles)
    install = "\n".join(values["setup_commands"])
    copied = {"wheels", "requirements.lock", "requirements-gpu.lock", ".ray/auth_token"}
    assert {f"/home/ubuntu/{name}" for name in copied} == set(mounts)
    assert "-r ~/requirements.lock" in install
    assert "--no-deps ~/wheels/swsdist-*.whl" in install
    started = [one for name in ("head", "worker") for one in values[f"{name}_start_ray_commands"]]
    assert all("~/swsdist/bin/ray st" in one for one in started), "the environment that was made is on no path"
    assert all("~/swsdist" in one for one in values["setup_commands"][1:])
    # Ray's provider needs boto3, and sets workers up by ssh: so it is no container that would lack both.
    assert "boto3" in values["head_setup_commands"][0]
    assert "docker" not in values


def _locked(name: str) -> dict[str, str]:
    """Version by package of a locked file, of which every line is checked."""
    found: dict[str, str] = {}
    package = ""
    for line in (DEPLOY / name).read_text().splitlines():
        if match := re.fullmatch(r"(\S+)==(\S+) \\", line):
            package = canonicalize_name(match[1])
            found[package] = match[2]
        elif not line.startswith("#"):
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
    return found


def _of_extras(names: str) -> list[str]:
    return [each for name in LOCK[names] for each in EXTRAS[name]]


def test_the_locked_requirements_are_those_of_the_project() -> None:
    """`make lock` after a change of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *_of_extras("EXTRAS")]
    for name, requirements in (
        ("requirements.lock", wanted),
        ("requirements-gpu.lock", [*wanted, *_of_extras("MORE")]),
        ("build.lock", project["build-system"]["requires"]),
    ):
        locked = _locked(name)
        for requirement in map(Requirement, requirements):
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(Version(version)), f"{requirement} is locked at {version}: make lock"


def test_the_images_hold_what_is_imported() -> None:
    """So whatever a config can name works in the image for GPUs, and in the other all but what the page says."""
    assert {*LOCK["EXTRAS"], *LOCK["MORE"]} == EXTRAS.keys() - {"dask", "dev", "docs", "site"}, (
        "an extra that is in no image"
    )
    imported = set()
    for path in (ROOT / "swsdist").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.split(".")[0] for name in names}
    imported -= {*sys.stdlib_module_names, "swsdist", "_typeshed", "dask", "distributed"}
    packages = packages_distributions()
    wanted = {canonicalize_name(packages.get(name, [name])[0]) for name in imported}
    plain, on_gpus = _locked("requirements.lock").keys(), _locked("requirements-gpu.lock").keys()
    assert {"safetensors", "torch", "imageio-ffmpeg"} <= wanted
    assert wanted <= on_gpus
    assert wanted - plain <= {canonicalize_name(Requirement(each).name) for each in _of_extras("MORE")}
    page = (ROOT / "docs/how-to/build-the-image.md").read_text()
    assert all(f"`{name}`" in page for names in ("EXTRAS", "MORE") for name in LOCK[names] if name != "ffmpeg")


def test_nodes_with_a_gpu_have_the_versions_of_the_others() -> None:
    """A node with others is not used. What is added is CUDA of one major version, and without it there is none."""
    plain, on_gpus = _locked("requirements.lock"), _locked("requirements-gpu.lock")
    assert plain.items() <= on_gpus.items()
    added = on_gpus.keys() - plain.keys()
    assert {"numba-cuda", "torch", "transformers", "nvidia-cuda-nvcc-cu12"} <= added
    assert all(name.endswith("-cu12") for name in added if name.startswith("nvidia-"))
    assert [name for name in plain if name.startswith("nvidia-")] == ["nvidia-ml-py"]  # Python, without CUDA
    assert "Linux on x86-64.\n" in (DEPLOY / "requirements-gpu.lock").read_text()


def _stages(text: str) -> list[list[tuple[str, str]]]:
    """Instructions of each stage of a Dockerfile, with their words."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.M))
    stages: list[list[tuple[str, str]]] = []
    for line in filter(None, joined.splitlines()):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            stages.append([])
        stages[-1].append((instruction, rest))
    return stages


def test_dockerfile() -> None:
    """The rules of hadolint that matter here, and ours: small, locked, not root, no network but registries."""
    text = (DEPLOY / "Dockerfile").read_text()
    build, last = _stages(text)
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}
    assert {instruction for instruction, _ in [*build, *last]} <= known
    images = {rest.split()[0] for instruction, rest in [*build, *last] if instruction == "FROM"}
    (image,) = images
    assert re.fullmatch(r"python:3\.\d+-slim", image), "one base, with a tag, small"
    assert f'PYTHON = "{image.split(":")[1].removesuffix("-slim")}"' in (DEPLOY / "lock.py").read_text()
    assert not re.search(r"\b(curl|wget|git|apt-get|sudo)\b", "".join(rest for _, rest in [*build, *last]))
    for instruction, rest in [*build, *last]:
        for install in re.findall(r"pip install [^&]*", rest) if instruction == "RUN" else ():
            assert "--require-hashes" in install or "--no-index" in install, install
            assert "--no-cache-dir" in install, install
        if instruction == "COPY" and "--from" not in rest:
            for name in rest.split()[:-1]:
                assert (ROOT / name).exists(), name
                assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines(), name
        if instruction == "WORKDIR":
            assert rest.startswith("/")
    # Which lock is chosen by an argument, of those that are copied.
    (chosen,) = (rest for instruction, rest in build if instruction == "ARG")
    assert chosen == "LOCK=requirements.lock"
    assert '-r "$LOCK"' in "".join(rest for _, rest in build)
    copied = next(rest for instruction, rest in build if instruction == "COPY").split()
    assert {"deploy/requirements.lock", "deploy/requirements-gpu.lock"} < {*copied}
    # A volume is its user's who made the folder that it is mounted on.
    compose = _read("serve/compose.yaml")
    kept = [mounted.partition(":")[2] for mounted in compose["services"]["swsdist"]["volumes"] if mounted[0] != "$"]
    assert kept == ["/words"]
    assert any(instruction == "RUN" and re.search(r"install -d -o 1000 .*/words$", rest) for instruction, rest in last)
    assert "--build-arg LOCK=requirements-gpu.lock" in (ROOT / "docs/how-to/build-the-image.md").read_text()
    assert [rest for instruction, rest in last if instruction == "USER"] == ["1000"]
    assert all(instruction != "RUN" or "useradd" in rest for instruction, rest in last), "what builds stays behind"
    assert ("ENTRYPOINT", '["swsdist"]') in last
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*", "nothing else gets into the image"


def test_the_start_on_windows_is_one_command_of_bash(tmp_path: Path) -> None:
    """As WSL would run it, with names that have blanks; cmd.exe itself is not here."""
    text = (DEPLOY / "windows/swsdist.cmd").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")  # else cmd.exe loses its place
    (line,) = re.findall(r'wsl -e bash -c "([^"]*)"\r$', text.decode("ascii"), re.MULTILINE)
    assert re.findall(r"%(?!%)", line.replace("%%", "")) == []
    program = tmp_path / "home" / ".local/share/swsdist/bin/swsdist"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    places = set()
    for folder, name in (
        ("/mnt/c/My tapes, 2015", "My tapes, 2015"),
        ("/mnt/d/My tapes, 2015", "My tapes, 2015"),
        ("/mnt/d/", "d"),
    ):
        environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "FOLDER": folder, "HERE": "/mnt/c/x/"}
        command = ["bash", "-c", line.replace("%%", "%")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        *words, place = done.stdout.splitlines()
        assert words == ["serve", folder.rstrip("/"), "--project"]
        assert re.fullmatch(re.escape(f"{tmp_path}/home/{name}-") + "[0-9a-f]{6}/words", place)
        places.add(place)
    assert len(places) == 3
