"""Secrets and personal paths go, everything else stays, and the numbers are right."""

import json
import re
from datetime import UTC, datetime
from operator import attrgetter

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
from pytest_regcase.redaction import PLACEHOLDER_PREFIX, Redactor, redact, redact_trial, secrets_in
from tests.redaction.planted import PLANTED, Planted

BY_NAME = {each.name: each for each in PLANTED}
OPENAI, ANTHROPIC = BY_NAME["openai"].secret, BY_NAME["anthropic"].secret

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
    "sk-learn-contrib-imbalanced-learning",
    "bearer authentication is used",
    "basic understanding of it",
    "password: str = None",
    "def login(user, password=None): ...",
    "password = get_password(user1)",
    'form.add("password", "username", "email")',
    "export API_KEY=EMPTY",
    "cache_key = user_profile_v2_page_list",
    "primary_key=customer_account_identifier",
    "sort(key=lambda item: item.name)",
    "idempotency_key: 550e8400-e29b-41d4-a716-446655440000",
    '{"token": "Hello", "logprob": -0.1}',
    '{"properties": {"password": {"type": "string"}}}',
    "https://host.corp.io/list?page=2&sort=name&key=id",
    "docker run -u 1000:1000 image",
    "grep -p pattern file",
    "the cookie: it is set by the server",
    "curl -H 'Authorization: Bearer $TOKEN'",
    "password: ****",
    "Enter your password: ",
    'echo "password: "; read x; echo "done"',
]


@pytest.mark.parametrize("planted", PLANTED, ids=attrgetter("name"))
def test_a_planted_secret_goes_and_what_stands_around_it_stays(planted: Planted) -> None:
    before, _, after = planted.around.partition("{}")
    text, counts = redact(planted.line)
    assert planted.secret not in text
    assert text.startswith(before)
    assert text.endswith(after)
    assert counts == {planted.kind: 1}


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("planted", PLANTED, ids=attrgetter("name"))
def test_it_goes_inside_json_too_whose_escapes_split_it(planted: Planted, levels: int) -> None:
    written: object = f"true\n{planted.line}"
    for _ in range(levels):
        written = json.dumps({"command": written})
    text, counts = redact(str(written))
    meant: object = text
    for _ in range(levels):
        meant = json.loads(str(meant))["command"]
    assert str(meant).startswith("true\n")
    assert planted.secret not in str(meant)
    assert counts == {planted.kind: 1}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # As PHP and Go write JSON.
        (r'{"dsn": "postgres:\/\/u:p4ss@db\/x"}', '{"dsn": "postgres://{}@db/x"}'),
        (r'{"run": "curl -u u:p4\u0026ss x"}', '{"run": "curl -u {} x"}'),
        (r'{"password": "pa\"ss\\word\u00e9"}', '{"password": "{}"}'),
        (r'{"k": "Bearer abc\u002bdef1234567"}', '{"k": "Bearer {}"}'),
        # An odd quote before it, and a string that nothing closes.
        (r'5" and {"k": "x\n", "password": "hunter2"}', r'5" and {"k": "x\n", "password": "{}"}'),
        (r'{"k": "x\n", "password": "hunter2', r'{"k": "x\n", "password": "{}'),
    ],
)
def test_escapes_hide_nothing(text: str, cleaned: str) -> None:
    found = redact(text)[0]
    assert re.sub(rf"{PLACEHOLDER_PREFIX}[a-z-]+-1", "{}", found) == cleaned


@pytest.mark.parametrize(
    "line",
    [
        "MYSQL_ROOT_PASSWORD: {}",
        "PGPASSWORD={} psql -h db",
        "my-cli --password {} run",
        "my-cli --password={}123",
        'os.environ["DB_PASSWORD"] = "{}"',
        "setenv('DB_PASSWORD', '{}1')",
        "<password>{}</password>",
        "password: str = '{}'",
        'config := map[string]string{{"password" => "{}"}}',
        "machine corp.io login ada password {}",
        "GET /login?user=x&password={}&y",
        "Server=db;User Id=sa;Password={}1!;Timeout=3",
        "openssl rsa -passin pass:{} -in k",
        "redis-cli -h cache -a {} ping",
        "sshpass -p '{}' ssh x",
        "docker login -u x -p {} registry.corp.io",
        'wget --user="me:{}" https://x.corp.io',
        '{{"key": "password", "value": {{"stringValue": "{}"}}}}',
        '{{"name": "db_password", "value": "{}"}}',
    ],
)
def test_a_short_password_goes_wherever_its_name_gives_it_away(line: str) -> None:
    text, counts = redact(line.format("swordfish"))
    assert "swordfish" not in text
    assert counts == {"secret_value": 1}


def test_half_of_a_surrogate_pair_stays_an_escape() -> None:
    text, counts = redact(r'{"k": "\ud800 password: \"hunter2\""}')
    assert counts == {"secret_value": 1}
    assert r"\ud800" in text
    text.encode()


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
    text, _ = redact("\n".join(each.line for each in PLANTED))
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
            st.sampled_from([each.line for each in PLANTED] + LEFT_ALONE),
            st.sampled_from([json.dumps({"password": each.line}) for each in PLANTED]),
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
            "response_id": secret,
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
            type=secret,
            message=secret,
            traceback=secret,
            chain=(
                ErrorLink(
                    type=secret,
                    message=secret,
                    code=secret,
                    error_type=secret,
                    body={"format": secret, "error": {"by": [secret]}},
                    request_id=secret,
                ),
            ),
        ),
        retried=(TrialError(type=secret, message=secret, traceback=secret),),
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
        "can_show", "by_person",
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


def test_a_pair_of_a_name_and_a_value_is_told_by_the_name() -> None:
    redactor = Redactor()
    headers = [{"name": "x-api-key", "value": "letters"}, {"name": "accept", "value": "letters"}]
    assert redactor.value(headers) == [
        {"name": "x-api-key", "value": f"{PLACEHOLDER_PREFIX}secret-value-1"},
        {"name": "accept", "value": "letters"},
    ]


def test_a_number_that_is_taken_is_not_given_again() -> None:
    redactor = Redactor(numbers_taken={"api_key": 4})
    assert redactor.text(OPENAI) == f"{PLACEHOLDER_PREFIX}api-key-5"


def test_people_stay_where_only_secrets_are_to_go() -> None:
    redactor = Redactor()
    text = f"ada@mail.corp.io in /home/alice has {OPENAI}"
    assert redactor.text(text, persons=False) == text.replace(OPENAI, f"{PLACEHOLDER_PREFIX}api-key-1")
