"""A project with one case that has three hypotheses, logs from outside, and what an attempt has kept."""

import shutil
from pathlib import Path

from pytest_regcase.case_files import seal_case

LOGS = Path(__file__).parents[2] / "evidence" / "logs"

CASE = """\
schema = 1
id = "t37"
title = "no answer from step 6 on"

[observation]
symptom = "model answered step 5, then stopped responding at step 6"
source_event = "eval-sweep-0412/trial-37"
cause_status = "unknown"  # computed
observed_at = 2026-04-12T09:31:07Z
failing_step = 6

[observation.recorded]
"recorded/attached/kern.log" = "ATTACHED"

[observation.source_digests]
"trial.log" = "SOURCE"

[[hypotheses]]
id = "deadline"
simulations = ["deadline-no-answer-v1"]

[[hypotheses]]
id = "resource-exhaustion"
simulations = ["oom-killed-v1", "engine-dead-v1"]

[[hypotheses]]
id = "auth"
simulations = ["auth-rejected-v1"]
may_coincide_with = ["deadline"]

[handover]
owner = "eval-harness-oncall"
next_decision = "compare the server's own logs"
"""

TRIAL_LOG = "2026-04-12 09:31:07,000 - agent - ERROR - openai.APITimeoutError: Request timed out.\n"
KEPT_LINE = "2026-04-12T09:31:05Z the agent's own words on what a simulated server did to it\n"
WIRE = '{"t": 0.01, "event": "listen", "port": 4242}\n{"t": 1.2, "event": "killed"}\n'


def make_project(root: Path) -> Path:
    """Write the project below `root` and return its case file; logs from outside lie in ``outside/``."""
    from pytest_regcase.records.canonical import digest

    attached = (LOGS / "kern.log").read_bytes()
    path = root / "cases" / "t37" / "case.toml"
    (path.parent / "recorded" / "attached").mkdir(parents=True)
    (path.parent / "recorded" / "attached" / "kern.log").write_bytes(attached)
    text = CASE.replace("ATTACHED", digest(attached)).replace("SOURCE", digest(TRIAL_LOG.encode()))
    path.write_text(text, encoding="utf-8")
    seal_case(path)
    (root / "pyproject.toml").write_text(
        '[tool.regcase.agents.default]\ncommand = ["my-agent"]\nrevision_paths = ["pyproject.toml"]\n'
    )
    attempt = root / ".regcase" / "sessions" / "s1" / "a1"
    (attempt / "out").mkdir(parents=True)
    (attempt / "wire.jsonl").write_text(WIRE)
    (attempt / "stderr.txt").write_text(f"starting up\n{KEPT_LINE}done\n")
    (attempt / "out" / "kern.log").write_bytes(attached.replace(b"gpu1", b"here"))
    outside = root / "outside"
    shutil.copytree(LOGS, outside)
    (outside / "trial.log").write_text(TRIAL_LOG)
    return path
