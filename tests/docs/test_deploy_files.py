"""What deploy/ holds for platforms that are not here is held against their schemas and rules."""

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
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML

import swsdist
from tools.markdown_pages import ROOT

DEPLOY = ROOT / "deploy"
LOCK = runpy.run_path(str(DEPLOY / "lock.py"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
IMAGE = f"registry.example.org/swsdist:{swsdist.__version__}"

#: Keys of the KubeRay operator's CRDs (v1.5) and of Kubernetes' core, as far as we use them: others are refused.
KEYS = """apiVersion kind metadata spec name labels entrypoint shutdownAfterJobFinishes ttlSecondsAfterFinished backoffLimit
    activeDeadlineSeconds rayClusterSpec rayVersion authOptions mode enableInTreeAutoscaling autoscalerOptions upscalingMode
    idleTimeoutSeconds resources headGroupSpec rayStartParams template serviceType workerGroupSpecs groupName replicas
    minReplicas maxReplicas containers image args env value requests limits readinessProbe livenessProbe exec command
    initialDelaySeconds periodSeconds timeoutSeconds failureThreshold volumeMounts mountPath readOnly volumes configMap secret
    secretName optional restartPolicy securityContext runAsNonRoot runAsUser nodeSelector tolerations key operator effect
    terminationGracePeriodSeconds schedule concurrencyPolicy jobTemplate"""
#: Sections whose keys are anybody's.
FREE = {"labels", "rayStartParams", "nodeSelector", "requests", "limits"}


def _unknown(values: Any) -> list[str]:
    """Keys that Kubernetes would refuse."""
    if isinstance(values, list):
        return [key for each in values for key in _unknown(each)]
    if not isinstance(values, dict):
        return []
    below = [key for name, each in values.items() if name not in FREE for key in _unknown(each)]
    return [*(values.keys() - set(KEYS.split())), *below]


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = YAML(typ="safe").load((DEPLOY / name).read_text())
    return read


@pytest.mark.parametrize(
    ("name", "api", "kind"),
    [
        ("rayjob", "ray.io/v1", "RayJob"),
        ("raycluster", "ray.io/v1", "RayCluster"),
        ("index-every-night", "batch/v1", "CronJob"),
    ],
)
def test_kubernetes(name: str, api: str, kind: str) -> None:
    values = _read(f"kubernetes/{name}.yaml")
    assert (values["apiVersion"], values["kind"]) == (api, kind)
    assert _unknown(values) == []
    assert _unknown({**values, "entrypiont": "a slip"}) == ["entrypiont"]
    text = (DEPLOY / f"kubernetes/{name}.yaml").read_text()
    assert {*re.findall(r"image: (?:&image )?(registry\S+)", text)} <= {IMAGE, f"{IMAGE}-gpu"}
    limits = re.findall(r'(?:memory|cpu): "?([^\s,}"]+)', text)
    assert all(re.fullmatch(r"[0-9.]+([KMGTPE]i|[mkMGTPE])?", one) for one in limits)


def test_network_policy() -> None:
    """It is one, and lets in only whom it says."""
    policy = _read("kubernetes/networkpolicy.yaml")
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    spec = policy["spec"]
    assert (set(spec), spec["policyTypes"]) == (
        {"podSelector", "policyTypes", "ingress", "egress"},
        ["Ingress", "Egress"],
    )
    assert all(set(rule) <= {"from", "to", "ports"} for rule in (*spec["ingress"], *spec["egress"]))
    inner, others = spec["ingress"]
    assert inner == {"from": [{"podSelector": spec["podSelector"]}]}
    assert [port["port"] for port in others["ports"]] == [8265]
    name = _read("kubernetes/rayjob.yaml")["metadata"]["name"]
    assert others["from"][0]["podSelector"]["matchLabels"] == {"job-name": name}


@pytest.mark.parametrize("name", ["rayjob", "raycluster"])
def test_what_belongs_together_on_kubernetes(name: str) -> None:
    spec = _read(f"kubernetes/{name}.yaml")["spec"]
    cluster = spec.get("rayClusterSpec", spec)
    group, on_gpus = cluster["workerGroupSpecs"]
    pods = [one["template"]["spec"] for one in (cluster["headGroupSpec"], group, on_gpus)]
    _, worker, gpu = containers = [container for pod in pods for container in pod["containers"]]
    assert [one["image"] for one in containers] == [IMAGE, IMAGE, f"{IMAGE}-gpu"]
    for pod, one in zip(pods, containers, strict=True):
        assert [mount["name"] for mount in one["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]
        assert one["env"][0]["value"].startswith(one["volumeMounts"][-1]["mountPath"])
        assert "memory" in one["resources"]["limits"]
        assert {"readinessProbe", "livenessProbe"} <= one.keys(), "the operator's own call wget"
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["volumes"][-1]["secret"]["optional"], "a service account's role may stand for the keys"
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0", "no workers beside the driver"
    assert cluster["enableInTreeAutoscaling"]
    assert 1 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"], "without a node no worker fits"
    assert cluster["rayVersion"] == _locked("requirements.lock")["ray"]
    assert cluster["authOptions"] == {"mode": "token"}
    # Nodes with a GPU cost more: there is none until one is asked for. The operator tells Ray of the limit.
    assert on_gpus["minReplicas"] == on_gpus["replicas"] == 0 < on_gpus["maxReplicas"]
    assert [one["resources"]["limits"].get("nvidia.com/gpu") for one in containers] == [None, None, "1"]
    assert all(gpu[name] == worker[name] for name in ("env", "readinessProbe", "livenessProbe"))
    assert pods[2]["securityContext"] == pods[1]["securityContext"]


def test_cloud() -> None:
    """Ray's own schema of its cluster launcher, and what it says of spot workers."""
    schema = Draft7Validator(json.loads((Path(ray.__file__).parent / "autoscaler/ray-schema.json").read_text()))
    values = _read("cloud/aws.yaml")
    assert schema.is_valid(values)
    assert not schema.is_valid({**values, "max_wrokers": 1})
    types = values["available_node_types"]
    head, worker, on_gpu = types[values["head_node_type"]], types["worker"], types["gpu"]
    assert "InstanceMarketOptions" not in head["node_config"], "the driver is not to be taken away"
    assert 1 <= worker["min_workers"] <= worker["max_workers"] <= values["max_workers"]
    # Its commands stand for those of all nodes, but for what they install.
    commands = [one.replace("requirements-gpu.lock", "requirements.lock") for one in on_gpu["worker_setup_commands"]]
    assert commands == values["setup_commands"]
    # A profile that is named is all that a node has: the head's starts the others.
    profiles = {node["node_config"]["IamInstanceProfile"]["Name"] for node in (head, worker, on_gpu)}
    assert len(profiles) == 2
    started = [values[f"{name}_start_ray_commands"] for name in ("head", "worker")]
    assert all("RAY_AUTH_MODE=token" in commands[-1] for commands in started)
    assert all("~/swsdist/bin/ray st" in one for commands in started for one in commands), "it is on no path"
    assert all("~/swsdist" in one for one in values["setup_commands"][1:])
    # What is copied is here, or the page says how it is made; what is installed is what is copied.
    mounts = values["file_mounts"]
    assert {one for one in mounts.values() if not (DEPLOY.parent / one).is_file()} == {"~/.ray/auth_token", "dist"}
    copied = {"wheels", "requirements.lock", "requirements-gpu.lock", ".ray/auth_token"}
    assert {f"/home/ubuntu/{name}" for name in copied} == set(mounts)
    install = "\n".join(values["setup_commands"])
    assert "-r ~/requirements.lock" in install
    assert "--no-deps ~/wheels/swsdist-*.whl" in install
    page = (DEPLOY.parent / "docs/how-to/run-on-a-cloud.md").read_text()
    (image,) = {node["node_config"]["ImageId"] for node in types.values()}
    told = ("> ~/.ray/auth_token", "--wheel-dir dist ", f"s/{image}/", *(f"`{name}`" for name in profiles))
    assert [words for words in told if words not in page] == []


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
    assert {*LOCK["EXTRAS"], *LOCK["MORE"]} == EXTRAS.keys() - {"dask", "dev", "docs", "site"}
    modules = re.compile(r"^ *(?:import (\w+)[\w.]*(?: as \w+)?$|from (\w+)[\w.]* import )", re.MULTILINE)
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "swsdist").rglob("*.py"))
    imported = {one or other for text in texts for one, other in modules.findall(text)}
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
    build, last = _stages((DEPLOY / "Dockerfile").read_text())
    every = [*build, *last]
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}
    assert {instruction for instruction, _ in every} <= known
    (image,) = {rest.split()[0] for instruction, rest in every if instruction == "FROM"}
    assert re.fullmatch(r"python:3\.\d+-slim", image), "one base, with a tag, small"
    assert f'PYTHON = "{image.split(":")[1].removesuffix("-slim")}"' in (DEPLOY / "lock.py").read_text()
    assert not re.search(r"\b(curl|wget|git|apt-get|sudo)\b", "".join(rest for _, rest in every))
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "nothing else gets into the image"
    for instruction, rest in every:
        for install in re.findall(r"pip install [^&]*", rest) if instruction == "RUN" else ():
            assert "--require-hashes" in install or "--no-index" in install, install
            assert "--no-cache-dir" in install, install
        for name in rest.split()[:-1] if instruction == "COPY" and "--from" not in rest else ():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name
        assert instruction != "WORKDIR" or rest.startswith("/")
    # Which lock is chosen by an argument, of those that are copied.
    assert [rest for instruction, rest in build if instruction == "ARG"] == ["LOCK=requirements.lock"]
    assert '-r "$LOCK"' in "".join(rest for _, rest in build)
    copied = next(rest for instruction, rest in build if instruction == "COPY").split()
    assert {"deploy/requirements.lock", "deploy/requirements-gpu.lock"} < {*copied}
    assert "--build-arg LOCK=requirements-gpu.lock" in (ROOT / "docs/how-to/build-the-image.md").read_text()
    # A volume is its user's who made the folder that it is mounted on.
    volumes = _read("serve/compose.yaml")["services"]["swsdist"]["volumes"]
    assert [mounted.partition(":")[2] for mounted in volumes if mounted[0] != "$"] == ["/words"]
    assert any(instruction == "RUN" and re.search(r"install -d -o 1000 .*/words$", rest) for instruction, rest in last)
    assert [rest for instruction, rest in last if instruction == "USER"] == ["1000"]
    assert all(instruction != "RUN" or "useradd" in rest for instruction, rest in last), "what builds stays behind"
    assert ("ENTRYPOINT", '["swsdist"]') in last


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
    places, tapes = set(), "My tapes, 2015"
    for folder, name in ((f"/mnt/c/{tapes}", tapes), (f"/mnt/d/{tapes}", tapes), ("/mnt/d/", "d")):
        environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "FOLDER": folder, "HERE": "/mnt/c/x/"}
        command = ["bash", "-c", line.replace("%%", "%")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        *words, place = done.stdout.splitlines()
        assert words == ["serve", folder.rstrip("/"), "--project"]
        assert re.fullmatch(re.escape(f"{tmp_path}/home/{name}-") + "[0-9a-f]{6}/words", place)
        places.add(place)
    assert len(places) == 3
