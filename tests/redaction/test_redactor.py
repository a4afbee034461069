"""Secrets and personal paths go, everything else stays, and the numbers are right."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_regcase.records.base import Record
from pytest_regcase.records.trial import (
    ErrorLink,
    Submission,
    ToolCall,
    TranscriptLine,
    Trial,
    TrialError,
)
from pytest_regcase.redaction import PLACEHOLDER_PREFIX, redact, redact_trial, secrets_in

# Put together here, so that no scanner takes this file for a leak.
OPENAI = "sk-" + "proj-" + "Ab3" * 12
ANTHROPIC = "sk-ant-" + "api03-" + "x9Y" * 10
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2" * 9
GOOGLE = "AIza" + "Sy" * 17 + "x1"
HUGGING_FACE = "hf_" + "qW3" * 12
SLACK = "xoxb-" + "123456789012-abcdef"
STRIPE = "sk_live_" + "4eC39HqLyjWDarjt"
TOKEN = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".dBjftJeZ4CVPmB92K27u"
PRIVATE_KEY = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE " + "KEY-----"

PLANTED = [
    (OPENAI, "api_key", "{}"),
    (ANTHROPIC, "api_key", "x-api-key: {}"),
    (AWS, "api_key", "aws {}"),
    (GITHUB, "api_key", "git push https://{}@host"),
    (GOOGLE, "api_key", "?key={}&x=1"),
    (HUGGING_FACE, "api_key", "login {}"),
    (SLACK, "api_key", "({})"),
    (STRIPE, "api_key", "'{}'"),
    ("sk-fake****0000", "masked_key", "Incorrect API key provided: {}. See"),
    ("abc.def-123456", "bearer_token", "Authorization: Bearer {}"),
    ("dXNlcjpwYXNz", "bearer_token", "'authorization': 'Basic {}'"),
    (TOKEN, "json_web_token", "cookie {}"),
    (PRIVATE_KEY, "private_key", "before\n{}\nafter"),
    ("user1:pass1", "url_credentials", "postgres://{}@db:5432/x"),
    ("hunter22", "secret_value", "password: '{}'"),
    ("a1b2c3d4e5", "secret_value", "MY_SERVICE_API_KEY={}"),
    ("correcthorse", "secret_value", "export DB_PASSWORD={}"),
    ("a1b2c3d4e5", "secret_value", "session_token = {}"),
    ("ada.lovelace@mail.corp.io", "email", "Author: {}"),
]

LEFT_ALONE = [
    "token = self.tokenizer.next",
    "password = get_password()",
    "max_tokens=123456789",
    "api_key=$OPENAI_API_KEY",
    "git clone git@github.com:some/repo.git",
    "someone@example.com",
    "task-oriented-and-rather-long-name",
    "a skilled worker",
    "/usr/lib/python3/site-packages/homes/x.py",
    "sha256:" + "0" * 64,
    "REDACTED-api-key-1",
]


@pytest.mark.parametrize(("secret", "kind", "around"), PLANTED)
def test_a_planted_secret_goes_and_what_stands_around_it_stays(secret: str, kind: str, around: str) -> None:
    before, _, after = around.partition("{}")
    text, counts = redact(around.format(secret))
    assert secret not in text
    assert text.startswith(before)
    assert text.endswith(after)
    assert counts == {kind: 1}


@pytest.mark.parametrize(("secret", "kind", "around"), PLANTED)
def test_it_goes_inside_json_text_too(secret: str, kind: str, around: str) -> None:
    arguments = json.dumps({"command": "true\n" + around.format(secret)})
    text, counts = redact(arguments)
    assert json.dumps(secret)[1:-1] not in text
    assert counts[kind] == 1
    assert isinstance(json.loads(text)["command"], str)


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/alice/work/x.py", "alice"),
        ("/Users/bob.smith/x", "bob.smith"),
        ("C:\\Users\\Carol\\x", "Carol"),
        ('{"p": "C:\\\\Users\\\\Carol\\\\x"}', "Carol"),
        ("/home/ubuntu/x", "ubuntu"),
    ],
)
def test_user_names_go_from_home_paths(path: str, name: str) -> None:
    text, counts = redact(path)
    assert name not in text
    assert counts == {"home_path": 1}
    assert text == path.replace(name, f"{PLACEHOLDER_PREFIX}user-1")


def test_a_user_name_that_a_path_shows_goes_as_a_word_too() -> None:
    text, counts = redact("cd /home/alice/x && ls -l  # alice alice 12, malice")
    assert text.count(f"{PLACEHOLDER_PREFIX}user-1") == 3
    assert "malice" in text
    assert counts == {"home_path": 1, "user_name": 2}


def test_an_account_name_that_names_nobody_stays_as_a_word() -> None:
    assert redact("/home/user/x: the user said so")[0].endswith("the user said so")


def test_the_same_secret_has_the_same_placeholder_and_another_one_another() -> None:
    text, counts = redact(f"{OPENAI} {ANTHROPIC} {OPENAI}")
    first, second, third = text.split(" ")
    assert first == third != second
    assert counts == {"api_key": 3}


def test_placeholders_mean_nothing_to_a_shell() -> None:
    text, _ = redact(" ".join(around.format(secret) for secret, _, around in PLANTED) + " /home/alice/x")
    placeholders = re.findall(rf"{PLACEHOLDER_PREFIX}\S*", text)
    assert len(placeholders) >= len(PLANTED)
    for placeholder in placeholders:
        assert re.match(rf"{PLACEHOLDER_PREFIX}[a-z-]+-[0-9]+", placeholder)


def test_secrets_in_leaves_personal_paths_out() -> None:
    assert secrets_in(f"/home/alice/x {OPENAI} ada@mail.corp.io") == {"api_key": 1}


@example("TOKEN: /home/0")
@given(
    st.lists(
        st.one_of(
            st.sampled_from([around.format(secret) for secret, _, around in PLANTED] + LEFT_ALONE),
            st.text(max_size=30),
            st.sampled_from(["/home/alice", "alice", "key=", "token: ", "=", "\n", "\\n", '"', "'"]),
        ),
        max_size=8,
    ).map(" ".join)
)
def test_doing_it_twice_changes_nothing_more(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, {})


def _trial(secret: str) -> Trial:
    """A trial with the secret in every text of it."""
    line = TranscriptLine.model_validate(
        {
            "step": 1,
            "role": "tool",
            "text": secret,
            "tool_calls": (ToolCall(id=secret, name=secret, arguments=json.dumps({"x": secret})),),
            "tool_call_id": secret,
            "raw_output": secret,
            "finish": secret,
            "usage": {secret: [secret, {"deep": secret}]},
            "model": secret,
            "offered_tools": (secret,),
            "error": secret,
            "at": datetime(2026, 4, 12, tzinfo=UTC),
            "from": secret,
        }
    )
    return Trial(
        format="trial-jsonl",
        harness=secret,
        run_id=secret,
        task_id=secret,
        attempt=1,
        event_id="e1",
        event_id_from="recorded",
        revision=secret,
        model=secret,
        task_text=secret,
        steps=(line,),
        error=TrialError(
            type=secret, message=secret, traceback=secret, chain=(ErrorLink(type=secret, message=secret),)
        ),
        labels=(secret,),
        conditions={"api_key": "any value at all", "nested": {"list": [secret], "seconds": 3}},
        submission=Submission(patch=secret, text=secret, mark=secret),
        partial_patch=secret,
        final_text=secret,
        missing=(secret,),
        source_digests={"x.json": "sha256:" + "0" * 64},
        redactions={"api_key": 2},
    )


@pytest.mark.parametrize("secret", [OPENAI, "/home/alice/x"])
def test_redact_trial_reaches_every_text(secret: str) -> None:
    before = _trial(secret)
    after = redact_trial(before)
    dumped = after.model_dump_json()
    assert secret not in dumped
    assert "alice" not in dumped
    assert "any value at all" not in dumped
    assert after.conditions["nested"]["seconds"] == 3
    assert after.source_digests == before.source_digests
    assert (after.event_id, after.attempt, after.steps[0].at) == (
        before.event_id,
        before.attempt,
        before.steps[0].at,
    )
    planted = before.model_dump_json().count(json.dumps(secret)[1:-1])
    kind = "api_key" if secret == OPENAI else "home_path"
    assert after.redactions[kind] == planted + before.redactions.get(kind, 0)
    assert after.redactions["secret_value"] == 1


def test_every_text_field_of_a_trial_is_filled_in_that_test() -> None:
    """So that a field added later cannot be forgotten there."""

    def unset(record: Record) -> set[str]:
        return set(type(record).model_fields) - record.model_fields_set

    trial = _trial("x")
    assert unset(trial) <= {
        "started_at", "ended_at", "failing_step", "termination", "outcome", "outcome_from", "model_requests",
        "can_show",
    }  # fmt: skip
    assert not unset(trial.steps[0])
    assert trial.error is not None
    assert unset(trial.error) == {"raised_by"}
    assert trial.submission is not None
    assert unset(trial.submission) == {"by"}


def test_a_secret_in_the_name_of_a_source_file_goes_and_its_digest_stays() -> None:
    digest = "sha256:" + "0" * 64
    trial = Trial(
        format="x",
        event_id="e",
        event_id_from="recorded",
        termination="error",
        outcome="undetermined",
        source_digests={f"{OPENAI}.json": digest, "token": digest, "a.json": digest},
    )
    cleaned = redact_trial(trial)
    assert cleaned.source_digests == {
        f"{PLACEHOLDER_PREFIX}api-key-1.json": digest,
        "token": digest,
        "a.json": digest,
    }
    assert cleaned.redactions == {"api_key": 1}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("cd /home/jörg/x", "cd /home/{}/x"),
        ("cd /home/Ωmega", "cd /home/{}"),
        (r"/home/j\u00f6rg/x", "/home/{}/x"),
        (r"/home/jane\u001b[0m", r"/home/{}\u001b[0m"),
        (r"in /home/jane for that\nnext", r"in /home/{} for that\nnext"),
        (r"C:\Users\Jane van Doe\AppData", r"C:\Users\{}\AppData"),
        (r"C:\\Users\\Jane Doe\\x", r"C:\\Users\\{}\\x"),
        (r"C:\\Users\\jane for that\nnext", r"C:\\Users\\{} for that\nnext"),
        ("C:/Users/Jane Doe/x", "C:/Users/{}/x"),
        (r"C:\Users\Jane and more", r"C:\Users\{} and more"),
    ],
)
def test_a_user_name_goes_whole(text: str, cleaned: str) -> None:
    assert redact(text)[0] == cleaned.format(f"{PLACEHOLDER_PREFIX}user-1")
