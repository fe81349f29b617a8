"""The network policy is one, and lets in only whom it says."""

from __future__ import annotations

from markdown_pages import ROOT
from ruamel.yaml import YAML


def test_network_policy() -> None:
    policy = YAML(typ="safe").load((ROOT / "deploy/kubernetes/networkpolicy.yaml").read_text())
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    spec = policy["spec"]
    assert set(spec) == {"podSelector", "policyTypes", "ingress", "egress"}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    for rule in (*spec["ingress"], *spec["egress"]):
        assert set(rule) <= {"from", "to", "ports"}
        assert all(0 < port["port"] < 65536 and port["protocol"] in ("TCP", "UDP") for port in rule.get("ports", ()))
    assert all(rule["from"] for rule in spec["ingress"]), "nobody is let in without a name"
    inner, others = spec["ingress"]
    assert inner == {"from": [{"podSelector": spec["podSelector"]}]}
    assert [port["port"] for port in others["ports"]] == [8265]
    job = YAML(typ="safe").load((ROOT / "deploy/kubernetes/rayjob.yaml").read_text())
    assert others["from"][0]["podSelector"]["matchLabels"] == {"job-name": job["metadata"]["name"]}
